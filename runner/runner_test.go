package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
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

// jobs is a source of jobs in memory.
type jobs []*jobspec.Job

func (j *jobs) Next() (*jobspec.Job, error) {
	if len(*j) == 0 {
		return nil, io.EOF
	}
	next := (*j)[0]
	*j = (*j)[1:]
	return next, nil
}

// Hidden reports false: nothing is.
func (*jobs) Hidden() bool { return false }

// job returns a request job with the defaults that matter here.
func job(seq int, host, account string) *jobspec.Job {
	return &jobspec.Job{
		Seq: int64(seq), ID: fmt.Sprintf("job-%d", seq), Host: host, Account: account, Cost: 1,
		HTTP:  &jobspec.HTTP{Method: "GET", URL: "http://" + host + "/"},
		Retry: jobspec.Retry{Attempts: 4, Initial: time.Second, Max: 30 * time.Second, Multiplier: 2, MaxWait: 5 * time.Minute, OnStatus: []int{408, 425, 429, 500, 502, 503, 504}},
	}
}

// caller answers attempts as a test says.
type caller func(context.Context, call.Attempt) call.Outcome

func (c caller) Call(ctx context.Context, a call.Attempt) call.Outcome { return c(ctx, a) }
func (c caller) Close()                                                {}

// takes returns a caller whose attempts take that long.
func takes(d time.Duration) caller {
	return func(ctx context.Context, a call.Attempt) call.Outcome {
		select {
		case <-time.After(d):
			return call.Outcome{Kind: call.OK, HTTP: &results.HTTP{Status: 200}}
		case <-ctx.Done():
			return call.Outcome{Kind: call.Cancelled, Sent: true}
		}
	}
}

// sink keeps records in memory.
type sink struct {
	mu      sync.Mutex
	records []results.Record
	err     error
}

func (s *sink) Append(rs ...*results.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		if s.err != nil {
			return s.err
		}
		s.records = append(s.records, *r)
	}
	return nil
}

// byID returns the records by job, and fails the test if a job has two.
func (s *sink) byID(t *testing.T) map[string]results.Record {
	t.Helper()
	all := make(map[string]results.Record)
	for _, r := range s.records {
		if _, doubled := all[r.ID]; doubled {
			t.Errorf("job %s has two records", r.ID)
		}
		all[r.ID] = r
	}
	return all
}

// world is one run under test.
type world struct {
	runner.Config
	sink sink
}

func newWorld(table *limits.Table, c call.Caller, js ...*jobspec.Job) *world {
	source := jobs(js)
	w := &world{}
	w.Config = runner.Config{
		Run: "test", Source: &source, Limits: table.For, Coordinator: limits.NewLocal(), Caller: c,
		Records: &w.sink, Stats: runner.NewStats(table.For), Global: 100, Queue: 1000, Grace: 8 * time.Second,
		Kill: context.Background(),
	}
	return w
}

// run runs the world and has the records judged.
func (w *world) run(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := runner.Run(ctx, w.Config); err != nil {
		t.Fatalf("Run: %v", err)
	}
	judge(t, w.Limits, w.sink.records)
}

// judge has the records audited for broken limits.
func judge(t *testing.T, limitOf func(limits.Key) limits.Limit, records []results.Record) {
	t.Helper()
	all := func(yield func(results.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
	for _, v := range audit.Check(all, audit.Spec{Limits: limitOf}).Violations {
		t.Errorf("audit: %+v", v)
	}
}

func caps(_ testing.TB, host, account int64) *limits.Table {
	var table limits.Table
	table.Add(limits.Host, limits.Entry{Pattern: "*", Concurrency: limits.Field[int64]{Value: host, Set: true}})
	table.Add(limits.Account, limits.Entry{Pattern: "*", Concurrency: limits.Field[int64]{Value: account, Set: true}})
	return &table
}

func rated(t *testing.T, rate string, burst int64) *limits.Table {
	t.Helper()
	r, err := limits.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	var table limits.Table
	table.Add(limits.Host, limits.Entry{Pattern: "*", Rate: limits.Field[limits.Rate]{Value: r, Set: true}, Burst: limits.Field[int64]{Value: burst, Set: true}})
	return &table
}

func TestRunEndsEveryJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 50 {
			js = append(js, job(i, "h", string(rune('a'+i%3))))
		}
		w := newWorld(caps(t, 4, 2), takes(time.Second), js...)
		w.Queue = 10
		began := time.Now()
		w.run(t, t.Context())
		if got := len(w.sink.byID(t)); got != 50 {
			t.Errorf("%d records, want 50", got)
		}
		if got, want := time.Since(began), 13*time.Second; got != want {
			t.Errorf("run took %v, want %v: four at a time", got, want)
		}
		sum := w.Stats.Summary()
		if sum.Attempts != 50 || sum.Ended[results.Succeeded] != 50 || sum.UnderWay != 0 || sum.Waiting != 0 || sum.PeakWay != 4 {
			t.Errorf("summary %+v, want 50 attempts, all succeeded, 4 at once", sum)
		}
	})
}

func TestRunDefersWhatCannotBeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 5 {
			j := job(i, "h", "")
			j.Deadline = jobspec.When{After: 25 * time.Second, Set: true}
			js = append(js, j)
		}
		w := newWorld(rated(t, "1/10s", 1), takes(time.Second), js...)
		began := time.Now()
		w.run(t, t.Context())
		records := w.sink.byID(t)
		for i := range 3 {
			r := records[fmt.Sprintf("job-%d", i)]
			if got, want := r.Attempts[0].StartedAt.Sub(began), time.Duration(i)*10*time.Second; r.Status != results.Succeeded || got != want {
				t.Errorf("job %d: %s, started after %v, want %v", i, r.Status, got, want)
			}
		}
		for i := 3; i < 5; i++ {
			r := records[fmt.Sprintf("job-%d", i)]
			if r.Status != results.Deferred || r.EndedAt.Sub(began) != 20*time.Second || r.Deferred.RetryAt.Sub(began) != 30*time.Second ||
				r.Deferred.Key.String() != "host/h" || r.Deferred.Reason != "host h: no token before the deadline" || r.Attempts != nil {
				t.Errorf("job %d: %+v, %+v, want it deferred at 20 s, retry at 30 s", i, r, r.Deferred)
			}
		}
	})
}

func TestRunRetriesHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := job(1, "x", "p")
		first.Retry.Initial = 10 * time.Second // waits 5 to 10 s
		second := job(2, "x", "q")
		tries := 0
		w := newWorld(caps(t, 1, 1), caller(func(ctx context.Context, a call.Attempt) call.Outcome {
			time.Sleep(100 * time.Millisecond)
			if a.Job.ID == "job-1" {
				if tries++; tries == 1 {
					return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 503}, Error: &results.Error{Kind: "status"}}
				}
			}
			return call.Outcome{Kind: call.OK, HTTP: &results.HTTP{Status: 200}}
		}), first, second)
		began := time.Now()
		w.run(t, t.Context())
		records := w.sink.byID(t)
		if got := records["job-2"].Attempts[0].StartedAt.Sub(began); got > 200*time.Millisecond {
			t.Errorf("second job started after %v, want it as soon as the first attempt ended", got)
		}
		r := records["job-1"]
		if len(r.Attempts) != 2 || r.Status != results.Succeeded || r.Attempts[1].Waited.Backoff < 5000 {
			t.Errorf("first job: %+v, want two attempts, the second after a backoff of 5 s", r)
		}
	})
}

func TestRunJudgesOutcomes(t *testing.T) {
	yes, no := true, false
	answered := func(status int) call.Outcome {
		return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: status}, Error: &results.Error{Kind: "status", Message: "status"}}
	}
	for _, row := range []struct {
		name    string
		method  string
		change  func(*jobspec.Job)
		outcome call.Outcome
		want    results.Status
		tries   int
	}{
		{"503 repeats any method", "POST", nil, answered(503), results.Failed, 4},
		{"500 of a GET repeats", "GET", nil, answered(500), results.Failed, 4},
		{"500 of a POST does not", "POST", nil, answered(500), results.Failed, 1},
		{"500 of a POST with a key repeats", "POST", func(j *jobspec.Job) {
			j.HTTP.Headers = []jobspec.Header{{Name: "idempotency-key", Value: "k"}}
		}, answered(500), results.Failed, 4},
		{"404 does not repeat", "GET", nil, answered(404), results.Failed, 1},
		{"a refused connection repeats any method", "POST", nil, call.Outcome{Kind: call.Refused}, results.Failed, 4},
		{"a lost answer of a GET repeats", "GET", nil, call.Outcome{Kind: call.Lost, Sent: true}, results.Failed, 4},
		{"a lost answer of a POST is unknown", "POST", nil, call.Outcome{Kind: call.Lost, Sent: true}, results.Unknown, 1},
		{"a timeout of a POST is unknown", "POST", nil, call.Outcome{Kind: call.Timeout, Sent: true}, results.Unknown, 1},
		{"a timeout before anything was sent repeats", "POST", nil, call.Outcome{Kind: call.Timeout}, results.Failed, 4},
		{"a POST said to be idempotent repeats", "POST", func(j *jobspec.Job) { j.Retry.Idempotent = &yes }, call.Outcome{Kind: call.Lost, Sent: true}, results.Failed, 4},
		{"a GET said not to be is unknown", "GET", func(j *jobspec.Job) { j.Retry.Idempotent = &no }, call.Outcome{Kind: call.Lost, Sent: true}, results.Unknown, 1},
		{"a bad certificate does not repeat", "GET", nil, call.Outcome{Kind: call.Broken}, results.Failed, 1},
		{"a command's timeout does not repeat", "", nil, call.Outcome{Kind: call.Timeout}, results.Failed, 1},
		{"a stopped command is interrupted", "", nil, call.Outcome{Kind: call.Cancelled, Sent: true}, results.Interrupted, 1},
		{"a stopped command said not to be idempotent is unknown", "", func(j *jobspec.Job) { j.Retry.Idempotent = &no }, call.Outcome{Kind: call.Cancelled, Sent: true}, results.Unknown, 1},
		{"a command's timeout has failed, idempotent or not", "", func(j *jobspec.Job) { j.Retry.Idempotent = &no }, call.Outcome{Kind: call.Timeout, Sent: true}, results.Failed, 1},
		{"a command's exit 75 repeats", "", nil, call.Outcome{Kind: call.Answered, Exec: &results.Exec{ExitCode: 75}}, results.Failed, 4},
		{"a command's exit 1 does not", "", nil, call.Outcome{Kind: call.Answered, Exec: &results.Exec{ExitCode: 1}}, results.Failed, 1},
		{"a command ended by a signal does not", "", nil, call.Outcome{Kind: call.Answered, Exec: &results.Exec{ExitCode: -1, Signal: "SIGSEGV"}}, results.Failed, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := job(1, "h", "a")
				j.Retry.OnStatus, j.Retry.OnExit = []int{408, 425, 429, 500, 502, 503, 504}, []int{75}
				if j.HTTP.Method = row.method; row.method == "" {
					j.HTTP, j.Exec = nil, &jobspec.Exec{Argv: []string{"x"}}
				}
				if row.change != nil {
					row.change(j)
				}
				w := newWorld(caps(t, 1, 1), caller(func(context.Context, call.Attempt) call.Outcome { return row.outcome }), j)
				w.run(t, t.Context())
				got := w.sink.records[0]
				if got.Status != row.want || len(got.Attempts) != row.tries {
					t.Errorf("%s after %d attempts, want %s after %d", got.Status, len(got.Attempts), row.want, row.tries)
				}
			})
		})
	}
}

func TestRunFailsWhenNoTimeIsLeftForAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := job(1, "h", "")
		j.Deadline = jobspec.When{After: 300 * time.Millisecond, Set: true}
		w := newWorld(caps(t, 1, 1), caller(func(context.Context, call.Attempt) call.Outcome {
			time.Sleep(200 * time.Millisecond)
			return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 503, Body: "why"}, Error: &results.Error{Kind: "status", Message: "status 503"}}
		}), j)
		began := time.Now()
		w.run(t, t.Context())
		r := w.sink.records[0]
		if r.Status != results.Failed || r.HTTP.Body != "why" || r.Error.Kind != "status" || time.Since(began) != 200*time.Millisecond {
			t.Errorf("%+v, %+v after %v, want it failed with its last answer at once", r, r.Error, time.Since(began))
		}
	})
}

func TestRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 20 {
			js = append(js, job(i, "h", ""))
		}
		js[0].HTTP.Method = "POST"
		ctx, stop := context.WithCancel(t.Context())
		w := newWorld(caps(t, 3, 3), takes(20*time.Second), js...)
		time.AfterFunc(time.Second, stop)
		began := time.Now()
		w.run(t, ctx)
		if got := time.Since(began); got != 6*time.Second {
			t.Errorf("the run went on for %v, want 1 s and the 5 s until attempts are told to end", got)
		}
		count := make(map[results.Status]int)
		for _, r := range w.sink.records {
			count[r.Status]++
		}
		if sum := w.Stats.Summary(); count[results.Unknown] != 1 || count[results.Interrupted] != 2 || sum.Unstarted != 17 || sum.Waiting != 0 {
			t.Errorf("records %v, summary %+v, want a POST unknown, 2 interrupted, 17 unstarted", count, sum)
		}
	})
}

func TestRunStopsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		var js []*jobspec.Job
		for i := range 10 {
			js = append(js, job(i, "h", ""))
		}
		w := newWorld(caps(t, 2, 2), takes(time.Second), js...)
		w.sink.err = full
		began := time.Now()
		err := runner.Run(t.Context(), w.Config)
		if !errors.Is(err, full) || time.Since(began) > 2*time.Second {
			t.Errorf("Run: %v after %v, want the sink's error as soon as what was under way has ended", err, time.Since(began))
		}
		if sum := w.Stats.Summary(); len(sum.Ended) > 0 || sum.Attempts > 4 || sum.Unrecorded != sum.Attempts || sum.Unstarted != 10-sum.Attempts {
			t.Errorf("summary %+v, want each job unrecorded, or not started", sum)
		}
	})
}

// TestLateGrantsAreGivenBack stops runs at moments around a grant: whatever the
// interleaving, every permit and every token comes back.
func TestLateGrantsAreGivenBack(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			local := limits.NewLocal()
			held := &slow{Coordinator: local, rng: rng}
			table := caps(t, 2, 1)
			var js []*jobspec.Job
			for i := range 6 {
				j := job(i, "h", string(rune('a'+i%2)))
				if rng.IntN(2) == 0 {
					j.Deadline = jobspec.When{After: time.Duration(rng.IntN(20)) * time.Millisecond, Set: true}
				}
				js = append(js, j)
			}
			w := newWorld(table, takes(time.Duration(rng.IntN(5))*time.Millisecond), js...)
			w.Coordinator, w.Grace = held, 0
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Microsecond, stop)
			w.run(t, ctx)
			if held.out != 0 {
				t.Fatalf("seed %d: %d grants were not given back", seed, held.out)
			}
			for _, r := range w.sink.records {
				for _, a := range r.Attempts {
					if r.Deadline.Before(a.StartedAt.Time) && !r.Deadline.IsZero() {
						t.Fatalf("seed %d: job %s started at %v, after its deadline %v", seed, r.ID, a.StartedAt, r.Deadline)
					}
				}
			}
		})
	}
}

// slow is a coordinator whose replies take a while.
type slow struct {
	limits.Coordinator
	rng *rand.Rand
	out int // grants not yet given back
}

func (s *slow) Sync(ctx context.Context, b *limits.Batch, r *limits.Reply) error {
	time.Sleep(time.Duration(s.rng.IntN(3000)) * time.Microsecond)
	s.out -= len(b.Releases) + len(b.Refunds)
	err := s.Coordinator.Sync(ctx, b, r)
	time.Sleep(time.Duration(s.rng.IntN(3000)) * time.Microsecond)
	for _, v := range r.Verdicts {
		if v.Cause == limits.Granted {
			s.out++
		}
	}
	return err
}

func TestRunRecordsAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(caps(t, 1, 1), caller(func(_ context.Context, a call.Attempt) call.Outcome {
			if a.Job.ID == "job-1" {
				panic("boom")
			}
			return call.Outcome{Kind: call.OK}
		}), job(1, "h", ""), job(2, "h", ""))
		w.run(t, t.Context())
		records := w.sink.byID(t)
		if r := records["job-1"]; r.Status != results.Failed || r.Error.Kind != "panic" {
			t.Errorf("the job that panicked: %+v, want it failed", r)
		}
		if r := records["job-2"]; r.Status != results.Succeeded {
			t.Errorf("the job behind it: %+v, want its permit back", r)
		}
	})
}

func TestRunInvalidLinesAndBrokenSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("input/output error")
		source := &scripted{errs: []error{&jobspec.Invalid{Pos: jobspec.Position{File: "-", Line: 1}, Err: errors.New("bad")}, gone}}
		w := newWorld(caps(t, 1, 1), takes(time.Second))
		w.Source = source
		if err := runner.Run(t.Context(), w.Config); !errors.Is(err, gone) {
			t.Errorf("Run: %v, want the source's error", err)
		}
		if len(w.sink.records) != 1 || w.sink.records[0].Status != results.Invalid || w.sink.records[0].ID != "-:1" {
			t.Errorf("records %+v, want one invalid line", w.sink.records)
		}
	})
}

type scripted struct{ errs []error }

func (s *scripted) Next() (*jobspec.Job, error) {
	err := s.errs[0]
	s.errs = slices.Delete(s.errs, 0, 1)
	return nil, err
}

// Hidden reports false: nothing is.
func (*scripted) Hidden() bool { return false }

func TestRunEndsWhenTheCoordinatorIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("connection refused")
		w := newWorld(caps(t, 1, 1), takes(time.Second), job(1, "h", ""), job(2, "h", ""))
		w.Coordinator = &losing{Coordinator: w.Coordinator, left: 1, err: gone}
		if err := runner.Run(t.Context(), w.Config); !errors.Is(err, gone) {
			t.Errorf("Run: %v, want the coordinator's error", err)
		}
		if r := w.sink.records; len(r) != 1 || r[0].Status != results.Succeeded {
			t.Errorf("records %+v, want the job that was under way to end", r)
		}
	})
}

// losing is a coordinator that answers a few times only.
type losing struct {
	limits.Coordinator
	left int
	err  error
}

func (l *losing) Sync(ctx context.Context, b *limits.Batch, r *limits.Reply) error {
	if l.left--; l.left < 0 {
		return l.err
	}
	return l.Coordinator.Sync(ctx, b, r)
}

func TestStoppedRunDoesNotCallWhatItWouldRepeatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		j := job(1, "h", "")
		w := newWorld(caps(t, 1, 1), caller(func(context.Context, call.Attempt) call.Outcome {
			stop()
			time.Sleep(time.Second)
			return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 503}, Error: &results.Error{Kind: "status"}}
		}), j)
		w.run(t, ctx)
		if r := w.sink.records[0]; r.Status != results.Interrupted || r.HTTP.Status != 503 {
			t.Errorf("%s with %+v, want it interrupted, with its last answer", r.Status, r.HTTP)
		}
	})
}

// stuck is a sink whose reader has stalled.
type stuck struct{ free chan struct{} }

func (s stuck) Append(...*results.Record) error { <-s.free; return nil }

func TestStalledReaderOfRecordsDoesNotMakeTheRunDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var js []*jobspec.Job
		for i := range 5000 {
			js = append(js, job(i, "quick", ""))
		}
		long := job(5000, "long", "")
		long.HTTP.URL = "http://long/"
		w := newWorld(caps(t, 50, 50), caller(func(ctx context.Context, a call.Attempt) call.Outcome {
			if a.Job == long {
				return takes(time.Hour)(ctx, a)
			}
			return fine
		}), append(js, long)...)
		s := stuck{make(chan struct{})}
		defer close(s.free)
		w.Records, w.Queue = s, 10_000
		ctx, stop := context.WithCancel(t.Context())
		kill, end := context.WithCancel(t.Context())
		w.Kill = kill
		time.AfterFunc(time.Second, stop)
		time.AfterFunc(10*time.Second, end)
		began := time.Now()
		err := runner.Run(ctx, w.Config)
		if took := time.Since(began); err == nil || took != 11*time.Second {
			t.Errorf("Run: %v after %v, want it to give the stalled reader a second after the kill", err, took)
		}
		sum := w.Stats.Summary()
		if len(sum.Ended) > 0 || sum.UnderWay != 0 || sum.Unrecorded != sum.Attempts || sum.Attempts+sum.Unstarted != 5001 {
			t.Errorf("summary %+v, want each job that was started counted as unrecorded", sum)
		}
		if sum.Attempts > 256+100 {
			t.Errorf("%d attempts, want no more than have room for their records", sum.Attempts)
		}
	})
}

func TestFirstToStartIsTheBestRankedOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		low, urgent := job(1, "h", "a"), job(2, "h", "b")
		urgent.Priority = 5
		w := newWorld(caps(t, 1, 1), takes(time.Second), low, urgent)
		w.run(t, t.Context())
		if first := w.sink.records[0]; first.ID != "job-2" {
			t.Errorf("first to end is %s, want the one with the higher priority, though it was read second", first.ID)
		}
	})
}
