package schedule_test

import (
	"container/heap"
	"testing"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

const (
	ms     limits.Time = 1e3
	second limits.Time = 1e6
)

// call is one job of a simulated run: what the schedule sees, how long each of
// its attempts takes, and what became of it.
type call struct {
	schedule.Job
	takes   limits.Time
	repeats int         // attempts after the first
	backoff limits.Time // before each of them
	starts  []limits.Time
	gaveUp  *schedule.Deferral
	gaveAt  limits.Time
	addedAt limits.Time
	lane    string       // the oracle's
	keys    []limits.Key // the oracle's
}

// sim runs a schedule against a State on a simulated clock.
type sim struct {
	t        testing.TB
	table    *limits.Table
	global   int
	now      limits.Time
	state    limits.State
	schedule *schedule.Schedule
	running  endHeap
	reply    limits.Reply

	onStart func(schedule.Start)
	onEnd   func(*call)
	onPause func(limits.PauseRequest)
	onDefer func(schedule.Deferral)
	asking  func() // before each batch
	settled func() // after everything that could start at now has
	pauses  []limits.PauseRequest
	pauseAt []limits.Time
	lose    func() (asked, answered bool) // whether a batch, or its reply, is lost
	batches int
	steps   int
	claims  int
}

func newSim(t testing.TB, table *limits.Table, global int) *sim {
	return &sim{
		t: t, table: table, global: global, schedule: schedule.New(table.For),
		lose: func() (asked, answered bool) { return false, false },
	}
}

// run adds the calls and goes on until nothing waits and nothing runs.
func (s *sim) run(calls []*call) {
	for _, c := range calls {
		c.Ref = c
		if c.Deadline == 0 {
			c.Deadline = limits.Never
		}
		if c.MaxWait == 0 {
			c.MaxWait = 1 << 62 // any pause
		}
		s.schedule.Add(&c.Job, s.now, 0, schedule.NotBefore)
	}
	s.deferred()
	for {
		s.step()
		next := s.schedule.Next()
		if len(s.running) > 0 {
			next = min(next, s.running[0].at)
		}
		if len(s.pauseAt) > 0 {
			next = min(next, s.pauseAt[0])
		}
		if next == limits.Never {
			break
		}
		if s.now = max(s.now, next); s.steps > 100_000_000 {
			s.t.Fatalf("at %d: there is always something to do", s.now)
		}
	}
	if n := s.schedule.Waiting(); n > 0 {
		s.t.Fatalf("at %d: nothing runs, nothing is due, and %d jobs still wait", s.now, n)
	}
}

// step does all that is due at now.
func (s *sim) step() {
	s.steps++
	for len(s.running) > 0 && s.running[0].at <= s.now {
		c := heap.Pop(&s.running).(end).call
		if s.onEnd != nil {
			s.onEnd(c)
		}
		s.schedule.Release(&c.Job, s.now)
		if len(c.starts) <= c.repeats {
			s.schedule.Add(&c.Job, s.now, s.now+c.backoff, schedule.Backoff)
		}
	}
	for len(s.pauseAt) > 0 && s.pauseAt[0] <= s.now {
		if s.onPause != nil {
			s.onPause(s.pauses[0])
		}
		s.schedule.Pause(s.pauses[0].Key, s.pauses[0].Until, s.now)
		s.pauses, s.pauseAt = s.pauses[1:], s.pauseAt[1:]
	}
	s.schedule.Tick(s.now)
	s.deferred()
	for round := 0; ; round++ {
		batch := s.schedule.Ask(s.now, s.global-len(s.running))
		if batch == nil {
			break
		}
		if round > 10_000 {
			s.t.Fatalf("at %d: the schedule never stops asking", s.now)
		}
		s.batches++
		s.claims += len(batch.Claims)
		if s.asking != nil {
			s.asking()
		}
		asked, answered := s.lose()
		if !asked {
			s.state.Sync(s.now, batch, &s.reply)
		}
		if asked || answered {
			s.schedule.Unanswered()
			continue
		}
		s.schedule.Answer(&s.reply)
		for _, start := range s.schedule.Started() {
			c := start.Job.Ref.(*call)
			c.starts = append(c.starts, s.now)
			if s.onStart != nil {
				s.onStart(start)
			}
			heap.Push(&s.running, end{s.now + c.takes, c})
		}
		s.deferred()
	}
	if s.settled != nil {
		s.settled()
	}
}

func (s *sim) deferred() {
	for _, d := range s.schedule.Deferred() {
		c := d.Job.Ref.(*call)
		c.gaveUp, c.gaveAt = &d, s.now
		if s.onDefer != nil {
			s.onDefer(d)
		}
	}
}

type end struct {
	at   limits.Time
	call *call
}

type endHeap []end

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(end)) }
func (h *endHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// entry is a limit of a test's table.
type entry struct {
	kind        limits.Kind
	pattern     string
	concurrency int64
	rate        string
	burst       int64
}

func table(t testing.TB, entries ...entry) *limits.Table {
	var table limits.Table
	for _, e := range entries {
		add := limits.Entry{Pattern: e.pattern}
		if e.concurrency > 0 {
			add.Concurrency = limits.Field[int64]{Value: e.concurrency, Set: true}
		}
		if e.rate != "" {
			rate, err := limits.ParseRate(e.rate)
			if err != nil {
				t.Fatal(err)
			}
			add.Rate = limits.Field[limits.Rate]{Value: rate, Set: true}
		}
		if e.burst > 0 {
			add.Burst = limits.Field[int64]{Value: e.burst, Set: true}
		}
		if !table.Add(e.kind, add) {
			t.Fatalf("doubled entry %s", e.pattern)
		}
	}
	return &table
}
