package runner_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// refused is the answer of a service that asks to be left alone.
func refused(status int, wait time.Duration) call.Outcome {
	return call.Outcome{
		Kind: call.Answered, HTTP: &results.HTTP{Status: status},
		Error: &results.Error{Kind: "status", Message: fmt.Sprint("status ", status)},
		Hint:  &call.Hint{Source: "retry-after", Raw: wait.String(), Wait: wait},
	}
}

var fine = call.Outcome{Kind: call.OK, HTTP: &results.HTTP{Status: 200}}

// script returns a caller whose n-th attempt, from 1, takes that long and ends
// as answer says.
func script(takes time.Duration, answer func(n int, a call.Attempt) call.Outcome) caller {
	var n atomic.Int64
	return func(ctx context.Context, a call.Attempt) call.Outcome {
		out := answer(int(n.Add(1)), a)
		time.Sleep(takes)
		return out
	}
}

func TestRefusalPausesThePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 20 {
			js = append(js, job(i, "x", "p"))
		}
		for i := range 5 {
			js = append(js, job(20+i, "y", "p"), job(30+i, "x", "q"))
		}
		w := newWorld(caps(t, 5, 5), script(50*time.Millisecond, func(n int, a call.Attempt) call.Outcome {
			if a.Job.ID == "job-2" && a.Number == 1 {
				return refused(429, 3*time.Second)
			}
			return fine
		}), js...)
		var told []runner.Pause
		w.Paused = func(p runner.Pause) { told = append(told, p) }
		began := time.Now()
		w.run(t, t.Context())
		for id, r := range w.sink.byID(t) {
			tries := 1
			if id == "job-2" {
				tries = 2
			}
			if r.Status != results.Succeeded || len(r.Attempts) != tries {
				t.Errorf("%s: %s after %d attempts, want it succeeded after %d", id, r.Status, len(r.Attempts), tries)
			}
			after := r.Attempts[len(r.Attempts)-1].StartedAt.Sub(began)
			if r.Host == "x" && r.Account == "p" {
				if after > 100*time.Millisecond && after < 3050*time.Millisecond {
					t.Errorf("%s started after %v, in the pause", id, after)
				}
			} else if after > time.Second {
				t.Errorf("%s started after %v, want it untouched by the pause of another pair", id, after)
			}
		}
		if len(told) != 2 || told[0].Key.String() != "pair/x/p" || told[0].Why != "429, retry-after: 3s" || !told[1].Over {
			t.Errorf("told of %+v, want one pause and its end", told)
		}
	})
}

func TestRefusalOfAHostLeavesNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 12 {
			js = append(js, job(i, "h", string(rune('a'+i))))
		}
		w := newWorld(rated(t, "4/s", 4), script(10*time.Millisecond, func(n int, a call.Attempt) call.Outcome {
			if n == 3 {
				return refused(503, 2*time.Second)
			}
			return fine
		}), js...)
		w.run(t, t.Context())
		var first, last time.Time
		for _, r := range w.sink.records {
			if at := r.Attempts[len(r.Attempts)-1].StartedAt.Time; first.IsZero() || at.After(last) {
				last = at
			}
			if first.IsZero() || r.Attempts[0].StartedAt.Before(first) {
				first = r.Attempts[0].StartedAt.Time
			}
		}
		// Four at once, then a pause of 2 s, then an empty bucket: nine at 4/s.
		if took := last.Sub(first); took < 4250*time.Millisecond || took > 4500*time.Millisecond {
			t.Errorf("the last start came after %v, want 2 s and nine tokens at 4/s", took)
		}
	})
}

func TestRefusalsDoNotCountButAreBounded(t *testing.T) {
	for _, row := range []struct {
		refusals int
		want     results.Status
		attempts int
	}{
		{10, results.Succeeded, 11},
		{99, results.Deferred, 11},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(caps(t, 1, 1), script(0, func(n int, a call.Attempt) call.Outcome {
				if n <= row.refusals {
					return refused(429, time.Second)
				}
				return fine
			}), job(1, "h", "a"))
			w.run(t, t.Context())
			if r := w.sink.records[0]; r.Status != row.want || len(r.Attempts) != row.attempts {
				t.Errorf("%d refusals: %s after %d attempts, want %s after %d", row.refusals, r.Status, len(r.Attempts), row.want, row.attempts)
			}
		})
	}
}

func TestRefusalThatMayNotBeWaitedFor(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*jobspec.Job)
		wait   time.Duration
		reason string
	}{
		{"longer than max_wait", func(j *jobspec.Job) { j.Retry.MaxWait = 5 * time.Minute }, 24 * time.Hour, "the server asked for 24h0m0s, more than max_wait 5m0s"},
		{"beyond the deadline", func(j *jobspec.Job) { j.Deadline = jobspec.When{After: 10 * time.Second, Set: true} }, 30 * time.Second, "the server asked for 30s, 10s left"},
		{"a command without host or account", func(j *jobspec.Job) {
			j.Host, j.Account, j.HTTP, j.Exec = "", "", nil, &jobspec.Exec{Argv: []string{"x"}}
			j.Retry.MaxWait = time.Minute
		}, time.Hour, "the server asked for 1h0m0s, more than max_wait 1m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := job(1, "h", "a")
				row.change(j)
				w := newWorld(caps(t, 1, 1), script(0, func(int, call.Attempt) call.Outcome {
					out := refused(429, row.wait)
					if j.Exec != nil {
						out.HTTP, out.Exec = nil, &results.Exec{ExitCode: 75}
					}
					return out
				}), j)
				began := time.Now()
				w.run(t, t.Context())
				r := w.sink.records[0]
				if r.Status != results.Deferred || r.Deferred.Reason != row.reason || time.Since(began) > 0 {
					t.Fatalf("%s, %+v after %v, want it deferred at once: %s", r.Status, r.Deferred, time.Since(began), row.reason)
				}
				if got := r.Deferred.RetryAt.Sub(began); got < row.wait || got > row.wait+time.Second {
					t.Errorf("retry at %v from the start, want %v", got, row.wait)
				}
			})
		})
	}
}

func TestRefusalHoldsOthersOnlyAsLongAsTheyMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, leaves := job(1, "h", "a"), job(2, "h", "a")
		waits.Retry.MaxWait, leaves.Retry.MaxWait = 2*time.Minute, 30*time.Second
		w := newWorld(caps(t, 1, 1), script(time.Second, func(n int, a call.Attempt) call.Outcome {
			if n == 1 {
				return refused(429, time.Minute)
			}
			return fine
		}), waits, leaves)
		w.run(t, t.Context())
		records := w.sink.byID(t)
		if r := records["job-1"]; r.Status != results.Succeeded || r.Attempts[1].Waited.Pause < 59_000 {
			t.Errorf("the job that was refused: %+v, want it to wait for the pause", r)
		}
		r := records["job-2"]
		if r.Status != results.Deferred || r.Attempts != nil || !strings.Contains(r.Deferred.Reason, "pair h/a: paused for longer than max_wait") || r.Deferred.Key.Kind != limits.Pair {
			t.Errorf("the job behind it: %+v, %+v, want it deferred by the pause", r, r.Deferred)
		}
	})
}
