package schedule_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// TestTurns has 16 processes share one bucket. Calls start at its rate, to the
// microsecond, though each process asks hardly more often than when its turn is, and
// though some leave on the way, give back what they got, or have jobs whose deadlines
// pass.
func TestTurns(t *testing.T) {
	for _, row := range []struct {
		name   string
		burst  int64
		leave  bool
		late   bool
		refund int     // one of so many starts is given back
		owners int     // accounts, each of which has a bucket of its own; 0: none
		lost   int     // slots, at most
		asks   float64 // a start, at most
	}{
		{name: "all stay", burst: 1, asks: 11},
		{name: "burst", burst: 5, asks: 11},
		{name: "half of them leave", burst: 1, leave: true, lost: 8, asks: 8},
		{name: "deadlines", burst: 1, late: true, asks: 13},
		{name: "refunds", burst: 3, refund: 7, lost: 4, asks: 11},
		{name: "accounts that are slow", burst: 1, owners: 5, lost: 35, asks: 12},
	} {
		const slot, slots = limits.Time(50_000), 400
		s := &shared{t: t, rng: rand.New(rand.NewPCG(1, 16)), refund: row.refund, owners: row.owners}
		if row.late {
			s.patience = 32 * slot
		}
		keys := table(t, entry{kind: limits.Host, pattern: "h", rate: "20/s", burst: row.burst},
			entry{kind: limits.Account, pattern: "*", rate: "6/s", burst: 1}).For
		for i := range 16 {
			p := &process{name: strconv.Itoa(i), Schedule: schedule.New(keys), leaves: limits.Never}
			if row.leave && i%2 == 1 {
				p.leaves = slot * limits.Time(100+i)
			}
			s.all = append(s.all, p)
			s.add(p)
			s.add(p)
		}
		s.run(slots * slot)
		// The last slot is at the end, and what was given back last may be there yet.
		if most := slots + int(row.burst); s.starts > most || s.starts < slots-1-row.lost {
			t.Errorf("%s: %d calls started, want %d, of which %d may be missing", row.name, s.starts, most, row.lost+1)
		}
		if asks := float64(s.asks) / float64(s.starts); asks > row.asks {
			t.Errorf("%s: asked %.2f times a start, want at most %.2f", row.name, asks, row.asks)
		}
	}
}

// shared is some processes that share a State, on a simulated clock.
type shared struct {
	t        *testing.T
	rng      *rand.Rand
	state    limits.State
	all      []*process
	now      limits.Time
	patience limits.Time // the longest that a job can wait; zero: for ever
	refund   int
	owners   int

	starts, asks int
}

type process struct {
	*schedule.Schedule
	name   string
	seq    int64
	leaves limits.Time
	gone   bool
}

// add gives a process another job.
func (s *shared) add(p *process) {
	p.seq++
	j := &schedule.Job{Seq: p.seq, Host: "h", Deadline: limits.Never}
	if s.patience > 0 {
		j.Deadline = s.now + limits.Time(s.rng.Int64N(int64(s.patience)))
	}
	if s.owners > 0 {
		j.Account = strconv.Itoa(s.rng.IntN(s.owners))
	}
	p.Add(j, s.now, 0, schedule.NotBefore)
}

func (s *shared) run(end limits.Time) {
	for s.now < end {
		for busy, rounds := true, 0; busy; rounds++ {
			if busy = false; rounds > 1000 {
				s.t.Fatal("they wake each other for ever")
			}
			for _, i := range s.rng.Perm(len(s.all)) {
				busy = s.turn(s.all[i]) || busy
			}
		}
		next := end
		for _, p := range s.all {
			if !p.gone {
				next = min(next, p.leaves, max(s.now+1, p.Next()))
			}
		}
		s.now = next
	}
}

// turn has a process do what it has to, and reports whether it asked for anything.
func (s *shared) turn(p *process) bool {
	switch {
	case p.gone:
		return false
	case s.now >= p.leaves:
		p.gone = true
		s.state.Leave(p.name, s.now)
		s.wake()
		return false
	}
	p.Tick(s.now)
	for range p.Deferred() {
		s.add(p)
	}
	batch := p.Ask(s.now, 10)
	if batch == nil {
		return false
	}
	s.asks++
	var reply limits.Reply
	if err := s.state.SyncMember(p.name, s.now, batch, &reply); err != nil {
		s.t.Fatal(err)
	}
	s.wake()
	p.Answer(&reply)
	for _, start := range p.Started() {
		if s.refund > 0 && s.rng.IntN(s.refund) == 0 {
			p.Refund(start.Job, s.now)
			p.Add(start.Job, s.now, 0, schedule.NotBefore)
			continue
		}
		s.starts++
		p.Release(start.Job, s.now)
		s.add(p)
	}
	return true
}

func (s *shared) wake() {
	for _, name := range s.state.Wakes() {
		i, _ := strconv.Atoi(name)
		s.all[i].Changed()
	}
}
