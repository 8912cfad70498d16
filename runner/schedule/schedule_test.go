package schedule_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

func TestTwoAccountsShareAHost(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 4}, entry{kind: limits.Account, pattern: "*", concurrency: 2})
	s := newSim(t, tab, 100)
	var calls []*call
	for i := range 50 {
		calls = append(calls, &call{Job: schedule.Job{Seq: int64(i), Host: "h", Account: "big"}, takes: second})
	}
	for i := range 2 {
		calls = append(calls, &call{Job: schedule.Job{Seq: int64(50 + i), Host: "h", Account: "small"}, takes: second})
	}
	s.run(calls)
	if calls[50].starts[0] != 0 || calls[51].starts[0] != 0 {
		t.Errorf("the small account started at %v and %v, want both at once", calls[50].starts, calls[51].starts)
	}
	if calls[1].starts[0] != 0 || calls[2].starts[0] != second || calls[49].starts[0] != 24*second {
		t.Errorf("the big account started its 2nd, 3rd and 50th at %v, %v, %v, want 0, 1 s, 24 s", calls[1].starts, calls[2].starts, calls[49].starts)
	}
}

func TestWaitingAccountHoldsNoPermit(t *testing.T) {
	for name, first := range map[string]call{
		"slow":     {Job: schedule.Job{Account: "slow"}, takes: 60 * second},
		"rated":    {Job: schedule.Job{Account: "rated"}, takes: second / 10},
		"retrying": {Job: schedule.Job{Account: "retrying"}, takes: second / 10, repeats: 1, backoff: 30 * second},
	} {
		t.Run(name, func(t *testing.T) {
			tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 2, rate: "10/s", burst: 1},
				entry{kind: limits.Account, pattern: "*", concurrency: 1},
				entry{kind: limits.Account, pattern: "rated", rate: "1/m"})
			s := newSim(t, tab, 100)
			var calls []*call
			for i := range 50 {
				c := first
				c.Seq, c.Host = int64(i), "h"
				calls = append(calls, &c)
			}
			for i := range 2 {
				calls = append(calls, &call{Job: schedule.Job{Seq: int64(50 + i), Host: "h", Account: "other"}, takes: second / 100})
			}
			s.run(calls)
			if got := calls[50].starts[0]; got != second/10 {
				t.Errorf("the other account started at %d, want at the host's second token", got)
			}
			if got := calls[51].starts[0]; got > 4*second/10 {
				t.Errorf("its second job started at %d, want it within the first 0.4 s", got)
			}
		})
	}
}

func TestDeadlineIsCertain(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", rate: "1/10s", burst: 1})
	for name, accounts := range map[string][]string{
		"one lane":    {"a", "a", "a", "a", "a"},
		"other lanes": {"a", "b", "c", "d", "e"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, tab, 100)
			var calls []*call
			for i, account := range accounts {
				calls = append(calls, &call{Job: schedule.Job{Seq: int64(i), Host: "h", Account: account, Deadline: 25 * second}, takes: second})
			}
			s.run(calls)
			for i, c := range calls[:3] {
				if want := []limits.Time{limits.Time(i) * 10 * second}; !slices.Equal(c.starts, want) {
					t.Errorf("call %d started at %v, want %v", i, c.starts, want)
				}
			}
			for i, c := range calls[3:] {
				want := &schedule.Deferral{Job: &c.Job, Why: schedule.NoTokens, Key: limits.Key{Kind: limits.Host, Name: "h"}, Until: 30 * second}
				if c.gaveAt != 20*second || c.gaveUp == nil || *c.gaveUp != *want {
					t.Errorf("call %d given up at %d as %+v, want at 20 s as %+v", 3+i, c.gaveAt, c.gaveUp, want)
				}
			}
		})
	}
}

func TestPriorityThenDeadlineThenTurns(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 1})
	s := newSim(t, tab, 100)
	job := func(seq int64, account string, priority int64, deadline limits.Time) *call {
		return &call{Job: schedule.Job{Seq: seq, Host: "h", Account: account, Priority: priority, Deadline: deadline}, takes: second}
	}
	calls := []*call{
		job(1, "a", 0, 0), job(2, "a", 0, 0), job(3, "a", 0, 0), job(4, "b", 0, 0),
		job(5, "c", 0, 100*second), job(6, "c", 0, 50*second), job(7, "d", 1, 0),
	}
	s.run(calls)
	var order []int64
	slices.SortFunc(calls, func(x, y *call) int { return int(x.starts[0] - y.starts[0]) })
	for _, c := range calls {
		order = append(order, c.Seq)
	}
	if diff := cmp.Diff([]int64{7, 6, 5, 1, 4, 2, 3}, order); diff != "" {
		t.Errorf("order of starts (-want +got):\n%s", diff)
	}
}

func TestBothLimitsHold(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 40, rate: "8/s"})
	s := newSim(t, tab, 100)
	var calls []*call
	for i := range 80 {
		calls = append(calls, &call{Job: schedule.Job{Seq: int64(i), Host: "h"}, takes: 10 * ms})
	}
	s.run(calls)
	for i, c := range calls {
		if want := limits.Time(i) * second / 8; c.starts[0] != want {
			t.Errorf("start %d at %d, want %d", i, c.starts[0], want)
		}
	}
}

func TestWaitsAddUp(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 1}, entry{kind: limits.Account, pattern: "a", rate: "1/10s", burst: 1})
	s := newSim(t, tab, 100)
	var waits []schedule.Waits
	s.onStart = func(start schedule.Start) { waits = append(waits, start.Waited) }
	calls := []*call{
		{Job: schedule.Job{Seq: 1, Host: "h"}, takes: 4 * second},
		{Job: schedule.Job{Seq: 2, Host: "h", Account: "a"}, takes: second, repeats: 1, backoff: 3 * second},
	}
	s.run(calls)
	want := []schedule.Waits{{}, {schedule.Host: 4 * second}, {schedule.Backoff: 3 * second, schedule.Rate: 6 * second}}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestPauseDefersWhatItMakesLate(t *testing.T) {
	s := newSim(t, table(t), 100)
	s.pauses = []limits.PauseRequest{{Key: limits.PairKey("h", "a"), Until: 60 * second}}
	s.pauseAt = []limits.Time{second}
	job := func(seq int64, account string) schedule.Job {
		return schedule.Job{Seq: seq, Host: "h", Account: account}
	}
	calls := []*call{
		{Job: job(1, "a"), takes: second, repeats: 1, backoff: 5 * second},
		{Job: job(2, "a"), takes: second, repeats: 1, backoff: 5 * second},
		{Job: job(3, "b"), takes: second, repeats: 1, backoff: 5 * second},
		{Job: job(4, "a"), takes: second, repeats: 1, backoff: 5 * second},
	}
	calls[1].Deadline = 30 * second
	calls[3].MaxWait = 50e9
	s.run(calls)
	if got := calls[0].starts[1]; got != 60*second {
		t.Errorf("paused job's second start at %d, want at the pause's end", got)
	}
	if got := calls[1]; got.gaveAt != second || got.gaveUp.Why != schedule.InPause || got.gaveUp.Until != 60*second {
		t.Errorf("job with a deadline in the pause: %+v at %d, want it given up at once", got.gaveUp, got.gaveAt)
	}
	if got := calls[2].starts[1]; got != 6*second {
		t.Errorf("other account's second start at %d, want 6 s", got)
	}
	if got := calls[3]; got.gaveAt != second || got.gaveUp.Why != schedule.LongPause {
		t.Errorf("job that waits 50 s at most: %+v at %d, want it given up at once", got.gaveUp, got.gaveAt)
	}
}

// TestMakespan holds the schedule to the lower bound: the busiest key's work over
// its cap. The goal is 1.01; taking turns stays just above it: over 10,100 seeds the
// medians are 1.0105 for sorted files and 1.0107 for shuffled ones. Of the 34 ms above
// a bound of 3 s (means), 28 are the overhang of the last jobs, for which alone the
// median is 1.0086: no order avoids them that does not know how long jobs will take.
// The rest is the busiest account's permits idle while others, whose turn it was, hold
// the hosts. The lane with the most jobs first would reach 1.0097, and starve the small.
func TestMakespan(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		var ratios []float64
		for seed := range uint64(301) {
			ratios = append(ratios, makespan(t, seed, shuffled))
		}
		slices.Sort(ratios)
		median := ratios[150]
		t.Logf("shuffled %v: makespan ÷ lower bound: median %.4f, worst %.4f", shuffled, median, ratios[300])
		if median > 1.012 {
			t.Errorf("shuffled %v: median makespan is %.4f of the lower bound, want at most 1.012", shuffled, median)
		}
	}
}

func makespan(t *testing.T, seed uint64, shuffled bool) float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	tab := table(t, entry{kind: limits.Host, pattern: "*", concurrency: 4}, entry{kind: limits.Account, pattern: "*", concurrency: 2})
	var calls []*call
	work := make(map[string]limits.Time)
	for i := range 400 {
		host, account := string(rune('A'+i/100)), string(rune('a'+rng.IntN(8)))
		c := &call{Job: schedule.Job{Seq: int64(i), Host: host, Account: account}, takes: 50*ms + limits.Time(rng.IntN(100))*ms}
		work[host] += c.takes / 4
		work[account] += c.takes / 2
		calls = append(calls, c)
	}
	if shuffled {
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		for i, c := range calls {
			c.Seq = int64(i)
		}
	}
	bound := limits.Time(0)
	for _, w := range work {
		bound = max(bound, w)
	}
	s := newSim(t, tab, 1000)
	s.run(calls)
	return float64(s.now) / float64(bound)
}

// TestPauseWhileAsking has a pause become known while a grant is under way: what
// it holds is given back, and who may not wait for it is given up.
func TestPauseWhileAsking(t *testing.T) {
	s := newSim(t, table(t, entry{kind: limits.Host, pattern: "h", concurrency: 5}), 100)
	patient := &schedule.Job{Seq: 1, Host: "h", Account: "a", Deadline: limits.Never, MaxWait: 1e12}
	hasty := &schedule.Job{Seq: 2, Host: "h", Account: "a", Deadline: limits.Never, MaxWait: 1e9}
	for _, j := range []*schedule.Job{patient, hasty} {
		s.schedule.Add(j, 0, 0, schedule.NotBefore)
	}
	batch := s.schedule.Ask(0, 10)
	s.schedule.Pause(limits.PairKey("h", "a"), 60*second, 0)
	s.state.Sync(1, batch, &s.reply)
	s.schedule.Answer(&s.reply)
	if started := s.schedule.Started(); len(started) > 0 {
		t.Errorf("%d jobs started in the pause", len(started))
	}
	if d := s.schedule.Deferred(); len(d) != 1 || d[0].Job != hasty || d[0].Why != schedule.LongPause {
		t.Errorf("given up: %+v, want the job that may wait one second only", d)
	}
	batch = s.schedule.Ask(2, 10)
	if len(batch.Refunds) != 2 || len(batch.Pauses) != 1 || len(batch.Claims) != 0 {
		t.Errorf("next batch %+v, want two refunds, the pause and no claim", batch)
	}
	s.state.Sync(2, batch, &s.reply)
	s.schedule.Answer(&s.reply)
	if next := s.schedule.Next(); next != 60*second {
		t.Errorf("next look at %d, want it at the end of the pause", next)
	}
}

func TestNoPauseIsWaitedForWithoutMaxWait(t *testing.T) {
	s := schedule.New(table(t).For)
	s.Pause(limits.Key{Kind: limits.Host, Name: "h"}, second, 0)
	s.Add(&schedule.Job{Host: "h", Deadline: limits.Never}, 0, 0, schedule.NotBefore)
	s.Add(&schedule.Job{Host: "other", Deadline: limits.Never}, 0, 0, schedule.NotBefore)
	if d := s.Deferred(); len(d) != 1 || d[0].Why != schedule.LongPause || d[0].Job.Host != "h" {
		t.Errorf("given up: %+v, want the job that may wait for no pause", d)
	}
}

// TestWaitsTellPausesFromTokens has a host pause, which empties its bucket: the
// pause counts until its end, and the empty bucket from then on.
func TestWaitsTellPausesFromTokens(t *testing.T) {
	s := newSim(t, table(t, entry{kind: limits.Host, pattern: "h", rate: "1/s", burst: 1}), 100)
	s.pauses = []limits.PauseRequest{{Key: limits.Key{Kind: limits.Host, Name: "h"}, Until: 5 * second}}
	s.pauseAt = []limits.Time{second / 2}
	waits := make(map[int64]schedule.Waits)
	s.onStart = func(start schedule.Start) { waits[start.Job.Seq] = start.Waited }
	var calls []*call
	for i := range 4 {
		calls = append(calls, &call{Job: schedule.Job{Seq: int64(i), Host: "h", Account: string(rune('a' + i))}, takes: ms})
	}
	s.run(calls)
	half := second / 2
	want := map[int64]schedule.Waits{
		0: {},
		1: {schedule.Rate: half + second, schedule.Pause: 9 * half},
		2: {schedule.Rate: half + 2*second, schedule.Pause: 9 * half},
		3: {schedule.Rate: half + 3*second, schedule.Pause: 9 * half},
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

// TestWaitsAreNotNegative has a reply come late: its moment is before one at which
// the lane was looked at since.
func TestWaitsAreNotNegative(t *testing.T) {
	s := newSim(t, table(t, entry{kind: limits.Host, pattern: "h", concurrency: 5}), 100)
	add := func(seq int64, now limits.Time) {
		s.schedule.Add(&schedule.Job{Seq: seq, Host: "h", Deadline: limits.Never}, now, 0, schedule.NotBefore)
	}
	add(1, 0)
	batch := s.schedule.Ask(10, 10)
	add(2, 30)
	s.state.Sync(20, batch, &s.reply)
	s.schedule.Answer(&s.reply)
	for _, start := range s.schedule.Started() {
		for cause, wait := range start.Waited {
			if wait < 0 {
				t.Errorf("waited %d for cause %d, want no negative part", wait, cause)
			}
		}
	}
}
