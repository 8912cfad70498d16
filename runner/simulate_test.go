package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

// TestSimulationIsTheRun runs random jobs whose calls sleep, and simulates the same:
// each job must start at the same time, or be deferred for the same reason.
func TestSimulationIsTheRun(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takes := func(j *jobspec.Job) time.Duration {
					return time.Duration(rand.New(rand.NewPCG(seed, uint64(j.Seq))).IntN(3e6)+1000) * time.Microsecond
				}
				sleeps := caller(func(_ context.Context, a call.Attempt) call.Outcome {
					time.Sleep(takes(a.Job))
					return call.Outcome{Kind: call.OK}
				})
				table := caps(t, 2, 1)
				if seed%2 == 0 {
					table = rated(t, "2/s", 3)
				}
				began := limits.TimeOf(time.Now())
				real := newWorld(table, sleeps, randomJobs(seed)...)
				simulated := newWorld(table, nil, randomJobs(seed)...)
				simulated.Stats = runner.NewStats(table.For)
				real.Global, simulated.Global = 5, 5
				ended, err := runner.Simulate(simulated.Config, began, takes)
				if err != nil {
					t.Fatal(err)
				}
				real.run(t, t.Context())
				if diff := gocmp.Diff(starts(real), starts(simulated)); diff != "" {
					t.Errorf("starts (-run +simulation):\n%s", diff)
				}
				if now := limits.TimeOf(time.Now()); now != ended {
					t.Errorf("the simulation ended after %v, the run after %v", ended.Sub(began), now.Sub(began))
				}
				a, b := real.Stats.Summary(), simulated.Stats.Summary()
				a.Longest = schedule.Wait{}
				if diff := gocmp.Diff(a, b); diff != "" {
					t.Errorf("summaries (-run +simulation):\n%s", diff)
				}
				judge(t, table.For, simulated.sink.records)
			})
		})
	}
}

// randomJobs returns jobs of few hosts and accounts, some with deadlines, times to
// start at and priorities.
func randomJobs(seed uint64) (js []*jobspec.Job) {
	rng := rand.New(rand.NewPCG(seed, 1))
	after := func(most time.Duration) jobspec.When {
		return jobspec.When{After: time.Duration(rng.Int64N(int64(most))), Set: rng.IntN(3) == 0}
	}
	for i := range 40 {
		j := job(i+1, fmt.Sprint("h", rng.IntN(2)), fmt.Sprint("a", rng.IntN(3)))
		j.Deadline, j.NotBefore, j.Priority = after(20*time.Second), after(10*time.Second), int64(rng.IntN(2))
		js = append(js, j)
	}
	return js
}

// starts tells when each job was started, or why it was not.
func starts(w *world) map[string]string {
	all := make(map[string]string)
	for _, r := range w.sink.records {
		if r.Deferred != nil {
			all[r.ID] = r.Deferred.Reason
			continue
		}
		all[r.ID] = string(r.Status) + " " + r.Attempts[0].StartedAt.Format(time.StampMicro)
	}
	return all
}

func TestSimulationEnds(t *testing.T) {
	second := func(*jobspec.Job) time.Duration { return time.Second }
	bad := &jobspec.Invalid{Err: errors.New("a bad line")}
	full := errors.New("no space")
	for _, row := range []struct {
		what   string
		change func(*world)
		took   time.Duration
		err    string
		ended  map[results.Status]int64
	}{
		{"with the last of its jobs", nil, 2 * time.Second, "", map[results.Status]int64{results.Succeeded: 2}},
		{"at once without any", func(w *world) { w.Source = &jobs{} }, 0, "", nil},
		{"with all jobs behind more bad lines than may wait to be written", func(w *world) {
			w.Source = &stream{first: slices.Repeat([]error{bad}, 3000), Source: w.Source}
		}, 2 * time.Second, "", map[results.Status]int64{results.Invalid: 3000, results.Succeeded: 2}},
		{"with more jobs ending at once than records may wait to be written", func(w *world) {
			w.Source, w.Limits, w.Global = free(6000), (&limits.Table{}).For, 2000
		}, 3 * time.Second, "", map[results.Status]int64{results.Succeeded: 6000}},
		{"at the timeout of calls that take longer", func(w *world) {
			for _, j := range *w.Source.(*jobs) {
				j.Timeout = 300 * time.Millisecond
			}
		}, 600 * time.Millisecond, "", map[results.Status]int64{results.Succeeded: 2}},
		{"where jobs cannot be read", func(w *world) { w.Source = &stream{first: []error{full}} }, 0, "read jobs: no space", nil},
		{"where records cannot be written", func(w *world) { w.sink.err = full }, time.Second, "no space", nil},
	} {
		w := newWorld(caps(t, 1, 1), nil, job(1, "h", "a"), job(2, "h", "a"))
		if row.change != nil {
			row.change(w)
		}
		ended, err := runner.Simulate(w.Config, 1e15, second)
		if took := ended.Sub(1e15); took != row.took || fmt.Sprint(err) != cmp.Or(row.err, "<nil>") {
			t.Errorf("Simulate %s: ended after %v with error %v, want %v and %q", row.what, took, err, row.took, row.err)
		}
		if diff := gocmp.Diff(row.ended, w.Stats.Summary().Ended, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Simulate %s: jobs by how they ended (-want +got):\n%s", row.what, diff)
		}
	}
}

// stream is a source that has errors in front of its jobs.
type stream struct {
	first []error
	jobspec.Source
}

func (s *stream) Next() (*jobspec.Job, error) {
	if len(s.first) == 0 {
		return s.Source.Next()
	}
	err := s.first[0]
	s.first = s.first[1:]
	return nil, err
}

// free returns jobs without host and account.
func free(n int) *jobs {
	var js jobs
	for i := range n {
		js = append(js, job(i+1, "", ""))
	}
	return &js
}
