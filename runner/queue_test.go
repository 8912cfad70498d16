package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// TestQueueHidesNothing simulates files whose first jobs fill the memory and cannot
// start: what stands behind them and can start does so at once.
func TestQueueHidesNothing(t *testing.T) {
	many := func(n int, text string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(text, "#", fmt.Sprint(i)) + "\n")
		}
		return b.String()
	}
	const caps = `limits: {hosts: {"*": {concurrency: 1}, idle: {concurrency: 4}, free: {concurrency: 1000}}, accounts: {"*": {concurrency: 1}}}`
	const seconds = `,"exec":{"argv":["x"]},"labels":{"takes":"10s"}}`
	const second = `,"exec":{"argv":["x"]},"labels":{"takes":"1s"}}`
	idle := many(100, `{"id":"idle-#","host":"idle"`+second)
	for _, row := range []struct {
		what   string
		jobs   string
		queues []int
		id     string // of the jobs that matter
		ends   time.Duration
	}{
		{"two busy hosts", many(50, `{"id":"a#","host":"a"`+seconds) + many(50, `{"id":"b#","host":"b"`+seconds) + idle, []int{1, 2, 3, 8, 100}, "idle", 25 * time.Second},
		{"more busy hosts than may wait", many(60, `{"id":"a#","host":"a#"`+seconds) + many(60, `{"id":"b#","host":"a#"`+seconds) + idle, []int{1, 50}, "idle", 25 * time.Second},
		{"a busy host of more accounts than are told apart", many(34_000, `{"id":"a#","host":"a","account":"c#"`+seconds) + idle, []int{10_000}, "idle", 25 * time.Second},
		{"busy accounts", many(50, `{"id":"a#","host":"free","account":"a"`+seconds) + many(8, `{"id":"idle-#","host":"free","account":"c#"`+seconds), []int{1, 4}, "idle", 10 * time.Second},
		{"jobs that are not to start yet", many(50, `{"id":"a#","host":"idle","not_before":"5m"`+seconds) + idle, []int{1, 20}, "idle", 25 * time.Second},
		{"jobs of no haste", many(50, `{"id":"a#","host":"a"`+seconds) + many(50, `{"id":"b#","host":"a","deadline":"1h"`+seconds) + `{"id":"soon","host":"a","deadline":"15s"` + seconds, []int{1, 20}, "soon", 10 * time.Second},
		{"jobs of no haste, at the deadline", many(50, `{"id":"a#","host":"a"`+seconds) + many(50, `{"id":"soon#","host":"a","deadline":"15s"`+seconds), []int{1, 20}, "soon49", 15 * time.Second},
	} {
		file := filepath.Join(t.TempDir(), "jobs.jsonl")
		if err := os.WriteFile(file, []byte(row.jobs), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, queue := range row.queues {
			s, err := jobspec.Load(jobspec.Options{Files: []string{"-", file}, Stdin: strings.NewReader(caps)})
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(&s.Limits, nil)
			w.Source, w.Queue = s.Source, queue
			began := limits.TimeOf(time.Now())
			_, err = runner.Simulate(w.Config, began, func(j *jobspec.Job) time.Duration {
				d, _ := time.ParseDuration(j.Labels["takes"])
				return d
			})
			if err != nil {
				t.Fatal(err)
			}
			if ended := lastOf(w.sink.records, row.id, began); ended != row.ends {
				t.Errorf("behind %s, with --queue %d: %s ended after %v, want %v", row.what, queue, row.id, ended, row.ends)
			}
			if int64(len(w.sink.records)) != s.Jobs {
				t.Errorf("behind %s: %d records of %d jobs", row.what, len(w.sink.records), s.Jobs)
			}
			s.Close()
		}
	}
}

// lastOf returns when the last job whose id begins so ended.
func lastOf(records []results.Record, id string, began limits.Time) (last time.Duration) {
	for _, r := range records {
		if strings.HasPrefix(r.ID, id) {
			last = max(last, r.EndedAt.Sub(began.Wall()))
		}
	}
	return last.Round(time.Millisecond)
}

// dripping is a source of jobs that a program writes one by one.
type dripping struct {
	jobs
	every time.Duration
}

func (d *dripping) Next() (*jobspec.Job, error) {
	<-time.After(d.every)
	return d.jobs.Next()
}

// TestJobsOfAPipeStartAsTheyCome has a program write jobs quicker than it is waited for
// to find out which is the best-ranked: the first start is not put off for all of them.
func TestJobsOfAPipeStartAsTheyCome(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(caps(t, 100, 100), takes(time.Millisecond))
			source := &dripping{every: every}
			for i := range 900 {
				source.jobs = append(source.jobs, job(i, "h", ""))
			}
			w.Source = source
			began := time.Now()
			w.run(t, t.Context())
			for _, r := range w.sink.records {
				late := max(0, 100*time.Millisecond-r.QueuedAt.Sub(began)) // while they are ranked
				if got := r.Attempts[0].StartedAt.Sub(r.QueuedAt.Time); got > late {
					t.Fatalf("a job every %v: %s started %v after it was read, want %v at most", every, r.ID, got, late)
				}
			}
		})
	}
}
