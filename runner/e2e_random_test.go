package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/audit"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// TestRandomRuns runs random jobs under random limits on a simulated clock; some
// runs are stopped. Whatever happens, the records keep every limit, each job has
// one end, and everything taken is given back.
func TestRandomRuns(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomRun(t, rand.New(rand.NewPCG(seed, 11))) })
		})
	}
}

func randomRun(t *testing.T, rng *rand.Rand) {
	table := randomLimits(t, rng)
	var js []*jobspec.Job
	for i := range 20 + rng.IntN(100) {
		js = append(js, randomJob(rng, i, table))
	}
	w := newWorld(table, randomCaller(rng), slices.Clone(js)...)
	w.Global, w.Queue = 1+rng.IntN(20), 1+rng.IntN(40)
	held := &slow{Coordinator: w.Coordinator, rng: rand.New(rand.NewPCG(rng.Uint64(), 0))}
	w.Coordinator = held
	if rng.IntN(3) == 0 {
		w.Config.Deadline = time.Duration(1+rng.IntN(60)) * time.Second
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := rng.IntN(3) == 0
	if stopped {
		w.Grace = time.Duration(rng.IntN(10)) * time.Second
		time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Millisecond, stop)
	}
	if err := runner.Run(ctx, w.Config); err != nil {
		t.Fatalf("Run: %v", err)
	}
	judgeWhole(t, w)
	checkCounts(t, w, js, ctx.Err() != nil)
	if held.out != 0 {
		t.Errorf("%d grants were not given back", held.out)
	}
}

// randomLimits returns limits of any kind for three hosts, three accounts and two
// pools.
func randomLimits(t *testing.T, rng *rand.Rand) *limits.Table {
	limit := func() string {
		s := ""
		if rng.IntN(2) == 0 {
			s += fmt.Sprintf("concurrency: %d, ", 1+rng.IntN(4))
		}
		if rng.IntN(3) == 0 {
			s += fmt.Sprintf("rate: %d/%ds, burst: %d", 1+rng.IntN(20), 1+rng.IntN(3), 3+rng.IntN(5))
		}
		return "{" + s + "}"
	}
	return limitsOf(t, fmt.Sprintf(`{hosts: {A: %s, "*": %s}, accounts: {a: %s, "*": %s}, pools: {p: %s, q: %s}}`,
		limit(), limit(), limit(), limit(), limit(), limit()))
}

func randomJob(rng *rand.Rand, i int, table *limits.Table) *jobspec.Job {
	j := job(i, []string{"A", "B", "C"}[rng.IntN(3)], []string{"", "a", "b", "c"}[rng.IntN(4)])
	j.HTTP.Method = []string{"GET", "POST"}[rng.IntN(2)]
	j.Cost = int64(rng.IntN(4))
	for _, pool := range []string{"p", "q"} {
		if rng.IntN(4) == 0 {
			j.Pools, j.PoolCost = append(j.Pools, pool), append(j.PoolCost, int64(rng.IntN(4)))
		}
	}
	j.Priority = int64(rng.IntN(3))
	if rng.IntN(4) == 0 {
		j.Deadline = jobspec.When{After: time.Duration(rng.IntN(20_000)) * time.Millisecond, Set: true}
	}
	if rng.IntN(8) == 0 {
		j.NotBefore = jobspec.When{After: time.Duration(rng.IntN(20_000)) * time.Millisecond, Set: true}
	}
	return j
}

// randomCaller returns a caller whose attempts take up to two seconds and end in
// any way.
func randomCaller(rng *rand.Rand) caller {
	seed := rng.Uint64()
	return func(ctx context.Context, a call.Attempt) call.Outcome {
		rng := rand.New(rand.NewPCG(seed, uint64(a.Job.Seq*100)+uint64(a.Number)))
		select {
		case <-time.After(time.Duration(rng.IntN(2000)) * time.Millisecond):
		case <-ctx.Done():
			return call.Outcome{Kind: call.Cancelled, Sent: true}
		}
		switch rng.IntN(10) {
		case 0:
			return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 503}, Error: &results.Error{Kind: "status"}}
		case 1:
			return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 404}, Error: &results.Error{Kind: "status"}}
		case 2:
			return call.Outcome{Kind: call.Lost, Sent: true, Error: &results.Error{Kind: "lost"}}
		case 3:
			return call.Outcome{Kind: call.Refused, Error: &results.Error{Kind: "connect"}}
		case 4:
			panic("boom")
		}
		return call.Outcome{Kind: call.OK, HTTP: &results.HTTP{Status: 200}}
	}
}

// judgeWhole has the records audited, the run's own cap included.
func judgeWhole(t *testing.T, w *world) {
	t.Helper()
	most := func(key limits.Key) limits.Limit {
		if key == (limits.Key{}) {
			return limits.Limit{Concurrency: int64(w.Global)}
		}
		return w.Limits(key)
	}
	all := func(yield func(results.Record, error) bool) {
		for _, r := range w.sink.records {
			if !yield(r, nil) {
				return
			}
		}
	}
	for _, v := range audit.Check(all, audit.Spec{Limits: most}).Violations {
		t.Errorf("audit: %+v", v)
	}
}

// checkCounts wants each job to have one end, the run's counts to agree with its
// records, and the waits of each attempt to add up.
func checkCounts(t *testing.T, w *world, js []*jobspec.Job, stopped bool) {
	t.Helper()
	sum, ended := w.Stats.Summary(), int64(0)
	for _, n := range sum.Ended {
		ended += n
	}
	if got := len(w.sink.byID(t)); int64(got) != ended || ended+sum.Unstarted != sum.Jobs || !stopped && got != len(js) {
		t.Errorf("%d records of %d jobs, stopped %v; summary %+v", got, len(js), stopped, sum)
	}
	if sum.Waiting != 0 || sum.UnderWay != 0 || sum.Attempts != int64(attempts(w.sink.records)) {
		t.Errorf("in the end %d attempts in records, summary %+v", attempts(w.sink.records), sum)
	}
	for _, r := range w.sink.records {
		ready := r.QueuedAt
		for i, a := range r.Attempts {
			if waited := a.AdmittedAt.Sub(ready.Time).Seconds() * 1e3; waited-a.Waited.Total > 0.01 || a.Waited.Total-waited > 0.01 {
				t.Errorf("%s, attempt %d: waited %.3f ms by its times, but %+v", r.ID, i+1, waited, a.Waited)
			}
			ready = a.EndedAt
		}
	}
}
