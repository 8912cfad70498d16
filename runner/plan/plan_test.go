package plan_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/plan"
	"agentlimit/runner/results"
)

// list is a source of jobs in memory.
type list []*jobspec.Job

func (l *list) Next() (*jobspec.Job, error) {
	if len(*l) == 0 {
		return nil, io.EOF
	}
	next := (*l)[0]
	*l = (*l)[1:]
	return next, nil
}

// Hidden reports false: nothing is.
func (*list) Hidden() bool { return false }

// jobs returns n jobs of a host and an account.
func jobs(n int, deadline time.Duration) *list {
	var l list
	for i := range n {
		j := &jobspec.Job{Seq: int64(i + 1), ID: fmt.Sprint(i + 1), Host: "h", Account: "a", Cost: 1, HTTP: &jobspec.HTTP{}}
		j.Deadline = jobspec.When{After: deadline, Set: deadline > 0}
		l = append(l, j)
	}
	return &l
}

func second(*jobspec.Job) time.Duration { return time.Second }

// kept is a sink that keeps ids.
type kept []string

func (k *kept) Append(records ...*results.Record) error {
	for _, r := range records {
		*k = append(*k, fmt.Sprintf("%s %s", r.ID, r.Status))
	}
	return nil
}

func TestMake(t *testing.T) {
	host, account := limits.Key{Kind: limits.Host, Name: "h"}, limits.Key{Kind: limits.Account, Name: "a"}
	rate := func(text string, burst int64) limits.Limit {
		r, err := limits.ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		return limits.Limit{Rate: r, Burst: burst}
	}
	type gain struct {
		took     time.Duration
		deferred int
	}
	for _, row := range []struct {
		what     string
		jobs     *list
		limits   map[limits.Key]limits.Limit
		took     time.Duration
		deferred int
		binding  limits.Key
		byRate   bool
		busy     time.Duration
		then     gain
	}{
		{"the permits of an account", jobs(12, 0), map[limits.Key]limits.Limit{host: {Concurrency: 4}, account: {Concurrency: 2}},
			6 * time.Second, 0, account, false, 6 * time.Second, gain{4 * time.Second, 0}},
		{"the rate of a host", jobs(12, 0), map[limits.Key]limits.Limit{host: rate("1/s", 1), account: {Concurrency: 2}},
			12 * time.Second, 0, host, true, 11 * time.Second, gain{11 * time.Second, 0}},
		{"the global cap", jobs(30, 0), map[limits.Key]limits.Limit{host: {Concurrency: 100}},
			3 * time.Second, 0, limits.Key{}, false, 3 * time.Second, gain{3 * time.Second, 0}},
		{"permits, before a deadline", jobs(12, 1500*time.Millisecond), map[limits.Key]limits.Limit{host: {Concurrency: 3}},
			2 * time.Second, 6, host, false, 2 * time.Second, gain{2 * time.Second, 4}},
	} {
		var records kept
		cfg := runner.Config{Source: row.jobs, Global: 10, Queue: 5, Records: &records, Limits: func(k limits.Key) limits.Limit { return row.limits[k] }}
		all := len(*row.jobs)
		f, err := plan.Make(cfg, 1e15, second)
		if err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		if f.Took.Round(time.Millisecond) != row.took || len(f.Deferred) != row.deferred || len(records) != all {
			t.Errorf("%s: it takes %v, %d deferred, %d records; want %v, %d, %d", row.what, f.Took, len(f.Deferred), len(records), row.took, row.deferred, all)
		}
		b := f.Binding
		if b.Key != row.binding || b.ByRate != row.byRate || b.Busy != row.busy {
			t.Errorf("%s: bound by %v, rate %v, busy %v; want %v, %v, %v", row.what, b.Key, b.ByRate, b.Busy, row.binding, row.byRate, row.busy)
		}
		if then := (gain{b.Then.Took.Round(time.Millisecond), len(b.Then.Deferred)}); then != row.then {
			t.Errorf("%s: with %+v it would be %v, want %v", row.what, b.Raised, then, row.then)
		}
	}
}

func TestMakeWithoutWork(t *testing.T) {
	cfg := runner.Config{Source: jobs(0, 0), Global: 10, Queue: 5, Limits: (&limits.Table{}).For}
	f, err := plan.Make(cfg, 1e15, second)
	if err != nil || f.Took != 0 || f.Binding != nil {
		t.Errorf("no jobs: %+v, error %v; want no time and nothing that binds", f, err)
	}
	cfg.Source = broken{}
	if _, err := plan.Make(cfg, 1e15, second); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("jobs that cannot be read: error %v, want io.ErrUnexpectedEOF", err)
	}
}

type broken struct{}

func (broken) Next() (*jobspec.Job, error) { return nil, io.ErrUnexpectedEOF }
func (broken) Hidden() bool                { return false }

// TestGainHasABound makes a forecast of one job more than are kept in memory.
func TestGainHasABound(t *testing.T) {
	for _, n := range []int{plan.MaxRaised, plan.MaxRaised + 1} {
		source := &same{n}
		cfg := runner.Config{Source: source, Global: 1000, Queue: 1000, Limits: (&limits.Table{}).For}
		f, err := plan.Make(cfg, 1e15, second)
		if err != nil {
			t.Fatal(err)
		}
		if found := f.Binding.Then != nil; found != (n == plan.MaxRaised) {
			t.Errorf("of %d jobs, the gain is found: %v", n, found)
		}
	}
}

// same is a source of so many jobs that need nothing.
type same struct{ left int }

func (s *same) Next() (*jobspec.Job, error) {
	if s.left == 0 {
		return nil, io.EOF
	}
	s.left--
	return &jobspec.Job{HTTP: &jobspec.HTTP{}}, nil
}

// Hidden reports false: nothing is.
func (*same) Hidden() bool { return false }

func TestDurations(t *testing.T) {
	measured := func(lines ...string) func(*plan.Durations) {
		return func(d *plan.Durations) {
			if err := d.Measure(results.Read(strings.NewReader(strings.Join(lines, "\n")))); err != nil {
				t.Fatal(err)
			}
		}
	}
	record := func(kind, host, outcome, ms string) string {
		return fmt.Sprintf(`{"v":1,"run":"r","id":"x","status":"succeeded","kind":%q,"ended_at":"2026-01-01T00:00:00Z","attempts":[{"host":%q,`+
			`"admitted_at":"2026-01-01T00:00:00Z","started_at":"2026-01-01T00:00:00Z","ended_at":"2026-01-01T00:00:00.%sZ","waited":{},"outcome":%q}]}`, kind, host, ms, outcome)
	}
	all := measured(
		record("http", "a", "ok", "100"), record("http", "a", "ok", "200"), record("http", "a", "failed", "999"),
		record("http", "b", "ok", "300"), record("exec", "", "ok", "400"), `{"v":1,"run":"r","id":"to`,
	)
	ms := func(all ...int) (d []time.Duration) {
		for _, n := range all {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	http, exec := &jobspec.Job{HTTP: &jobspec.HTTP{}}, &jobspec.Job{Exec: &jobspec.Exec{}}
	onHost := func(j *jobspec.Job, host string) *jobspec.Job {
		with := *j
		with.Host = host
		return &with
	}
	for _, row := range []struct {
		what  string
		teach func(*plan.Durations)
		job   *jobspec.Job
		want  []time.Duration // one of them, and each at times
	}{
		{"nothing is known", func(*plan.Durations) {}, http, ms(0)},
		{"all are assumed", func(d *plan.Durations) { d.Assumed = time.Second }, http, ms(1000)},
		{"its host was measured", all, onHost(http, "a"), ms(100, 200)},
		{"another of its kind was measured", all, onHost(http, "z"), ms(100, 200, 300)},
		{"a command without a host", all, exec, ms(400)},
		{"only the other kind was measured", measured(record("http", "a", "ok", "100")), exec, ms(100)},
		{"the last assumption that fits holds, above what was measured", func(d *plan.Durations) {
			all(d)
			d.Hosts = []plan.HostDuration{{Hosts: "a", Takes: 1}, {Hosts: "*", Takes: time.Second}, {Hosts: "b", Takes: 3}}
		}, onHost(http, "a"), ms(1000)},
	} {
		d := plan.Durations{Seed: 7}
		row.teach(&d)
		var got []time.Duration
		for seq := range int64(100) {
			row.job.Seq = seq
			drawn := d.Of(row.job)
			if again := d.Of(row.job); again != drawn {
				t.Errorf("%s: job %d takes %v, asked again %v", row.what, seq, drawn, again)
			}
			got = append(got, drawn)
		}
		slices.Sort(got)
		if diff := cmp.Diff(row.want, slices.Compact(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.what, diff)
		}
	}
	if err := new(plan.Durations).Measure(results.Read(strings.NewReader("no record\n"))); err == nil {
		t.Error("a file without records: no error")
	}
}
