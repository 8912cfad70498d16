package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

func TestTheLongestWaitIsKnown(t *testing.T) {
	host, pair := limits.Key{Kind: limits.Host, Name: "h"}, limits.PairKey("h", "a")
	for _, row := range []struct {
		name   string
		table  func(*testing.T) *limits.Table
		change func(*world)
		want   schedule.Wait // but for when
	}{
		{"for a permit", func(t *testing.T) *limits.Table { return caps(t, 1, 5) }, nil, schedule.Wait{Cause: schedule.Host, Key: host}},
		{"for a token", func(t *testing.T) *limits.Table { return rated(t, "1/m", 1) }, nil, schedule.Wait{Cause: schedule.Rate, Key: host}},
		{"for a pause from before", func(t *testing.T) *limits.Table { return caps(t, 5, 5) }, func(w *world) {
			w.Pauses = []limits.PauseRequest{{Key: pair, Until: w.Coordinator.Now().Add(time.Minute)}}
		}, schedule.Wait{Cause: schedule.Pause, Key: pair}},
		{"for the global cap", func(t *testing.T) *limits.Table { return caps(t, 5, 5) }, func(w *world) { w.Global = 1 }, schedule.Wait{Cause: schedule.Global}},
		{"for its own backoff", func(t *testing.T) *limits.Table { return caps(t, 5, 5) }, func(w *world) {
			w.Caller = script(0, func(n int, _ call.Attempt) call.Outcome {
				if n > 2 {
					return fine
				}
				return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 503}, Error: &results.Error{Kind: "status"}}
			})
		}, schedule.Wait{Cause: schedule.Backoff}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := []*jobspec.Job{job(1, "h", "a"), job(2, "h", "a"), job(3, "x", "x")}
				js[0].Retry.Initial, js[1].Retry.Initial = time.Minute, time.Minute
				js[2].NotBefore = jobspec.When{After: 10 * time.Minute, Set: true} // nobody waits for its time
				w := newWorld(row.table(t), takes(30*time.Second), js...)
				if row.change != nil {
					row.change(w)
				}
				began := time.Now()
				done := make(chan struct{})
				go func() { defer close(done); w.run(t, context.Background()) }()
				time.Sleep(5 * time.Second)
				got := w.Stats.Summary().Longest
				if since := got.Since.Wall().Sub(began); since != 0 {
					t.Errorf("it waits since %v from the start, want since the start", since)
				}
				if got.Since = 0; got != row.want {
					t.Errorf("the longest wait is %+v, want %+v", got, row.want)
				}
				<-done
				if got := w.Stats.Summary().Longest; got != (schedule.Wait{}) {
					t.Errorf("when all is done the longest wait is %+v, want none", got)
				}
			})
		})
	}
}

func TestPausesFromBeforeAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(caps(t, 5, 5), takes(time.Second), job(1, "h", "a"))
		key := limits.PairKey("h", "a")
		w.Pauses = []limits.PauseRequest{{Key: key, Until: w.Coordinator.Now().Add(time.Minute)}}
		var told []runner.Pause
		w.Paused = func(p runner.Pause) { told = append(told, p) }
		w.run(t, t.Context())
		if len(told) != 2 || told[0].Key != key || told[0].Over || !told[1].Over {
			t.Errorf("told of %+v, want a pause and its end", told)
		}
	})
}

func TestBusy(t *testing.T) {
	second := limits.Rate{Tokens: 1, Per: 1e6}
	for _, row := range []struct {
		what   string
		key    runner.KeyStats
		want   time.Duration
		byRate bool
	}{
		{"nothing limits it", runner.KeyStats{Held: time.Hour, Spent: 9}, 0, false},
		{"its calls shared the permits", runner.KeyStats{Limit: limits.Limit{Concurrency: 4}, Held: 10 * time.Second}, 2500 * time.Millisecond, false},
		{"what the burst held needed no time", runner.KeyStats{Limit: limits.Limit{Rate: second, Burst: 5}, Spent: 5}, 0, false},
		{"the rest had to refill", runner.KeyStats{Limit: limits.Limit{Rate: second, Burst: 5}, Spent: 12}, 7 * time.Second, true},
		{"the longer of both counts", runner.KeyStats{Limit: limits.Limit{Concurrency: 1, Rate: second, Burst: 5}, Held: 8 * time.Second, Spent: 12}, 8 * time.Second, false},
	} {
		if got, byRate := row.key.Busy(); got != row.want || byRate != row.byRate {
			t.Errorf("%s: Busy() of %+v = %v, %v, want %v, %v", row.what, row.key, got, byRate, row.want, row.byRate)
		}
	}
}
