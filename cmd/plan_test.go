package cmd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

// plannedFiles are job files that take two to four seconds. A call to host 300 takes
// 300 ms.
var plannedFiles = []struct{ what, jobs string }{
	{"permits of a host and of accounts", `
limits: {hosts: {"300": {concurrency: 4}}, accounts: {"*": {concurrency: 2}}}
defaults: {host: "300"}
x-call: &call {url: "${var:base}/300"}
jobs:
- {id: "a${item:value}", account: a, http: *call, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}}
- {id: "b${item:value}", account: b, http: *call, for_each: {values: [1, 2, 3, 4, 5, 6]}}
`},
	{"two hosts and one account, calls of two lengths", `
limits: {hosts: {"*": {concurrency: 3}}, accounts: {shared: {concurrency: 4}}}
defaults: {account: shared}
jobs:
- {id: "slow${item:value}", host: "600", http: {url: "${var:base}/600"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}
- {id: "fast${item:value}", host: "250", http: {url: "${var:base}/250"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}
`},
	{"a rate with a burst", `
limits: {hosts: {"100": {rate: 5/s, burst: 4}}}
jobs:
- {host: "100", http: {url: "${var:base}/100?${item:value}"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]}}
`},
	{"costs and pools", `
limits: {pools: {tokens: {rate: 1000/s, burst: 1000}, gpu: {concurrency: 1}}}
jobs:
- {host: "200", cost: {tokens: 700}, http: {url: "${var:base}/200?${item:value}"}, for_each: {values: [1, 2, 3, 4, 5]}}
- {host: "200", pools: [gpu], cost: {tokens: 10}, http: {url: "${var:base}/200?gpu${item:value}"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8]}}
`},
	{"more than a rate allows before the deadline", `
limits: {hosts: {"100": {rate: 1/s, burst: 1}}}
jobs:
- {id: "j${item:value}", host: "100", deadline: 2500ms, http: {url: "${var:base}/100"}, for_each: {values: [1, 2, 3, 4, 5, 6]}}
`},
	{"more than permits allow before the deadline", `
limits: {hosts: {"1100": {concurrency: 2}}}
jobs:
- {id: "j${item:value}", host: "1100", deadline: 1650ms, http: {url: "${var:base}/1100"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7]}}
`},
	{"priorities, and a pool that the low ones lack", `
limits: {hosts: {"500": {concurrency: 2}}, pools: {licence: {concurrency: 1}}}
defaults: {host: "500"}
x-call: &call {url: "${var:base}/500"}
jobs:
- {id: "low${item:value}", http: *call, deadline: 2800ms, for_each: {values: [1, 2, 3, 4, 5, 6]}}
- {id: "high${item:value}", priority: 2, pools: [licence], http: *call, for_each: {values: [1, 2, 3, 4]}}
`},
	{"times to start at", `
limits: {accounts: {a: {concurrency: 1}}}
defaults: {account: a, host: "300"}
x-call: &call {url: "${var:base}/300"}
jobs:
- {id: now, http: *call}
- {id: later, http: *call, not_before: 1s}
- {id: last, http: *call, not_before: 2200ms}
- {id: never, http: *call, not_before: 5s, deadline: 4s}
- {id: "filler${item:value}", http: *call, priority: -1, for_each: {values: [1, 2, 3]}}
`},
	{"the global cap alone", `
limits: {global: {concurrency: 3}}
jobs:
- {host: "250", http: {url: "${var:base}/250?${item:value}"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]}}
`},
	{"commands, beside requests at a rate", `
limits: {global: {concurrency: 5}, hosts: {"1100": {concurrency: 2}, "100": {rate: 3/s}}}
jobs:
- {host: "1100", exec: {argv: [sleep, "1.1"]}, labels: {n: "${item:value}"}, for_each: {values: [1, 2, 3, 4, 5, 6]}}
- {host: "100", http: {url: "${var:base}/100?${item:value}"}, for_each: {values: [1, 2, 3, 4, 5, 6, 7]}}
`},
}

// TestPlanIsTheRun runs job files for real, and wants the forecast to have said when
// they end and what is deferred.
func TestPlanIsTheRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		takes, _ := time.ParseDuration(r.URL.Path[1:] + "ms")
		time.Sleep(takes)
	}))
	t.Cleanup(server.Close)
	for _, file := range plannedFiles {
		t.Run(file.what, func(t *testing.T) {
			t.Parallel()
			planned, finish := forecast(t, server.URL, file.jobs)
			for id, r := range planned {
				if r.Deadline.IsZero() || r.Attempts == nil {
					continue
				}
				if spare := r.Deadline.Sub(r.Attempts[0].StartedAt.Time); spare < 500*time.Millisecond {
					t.Errorf("%s is to start %v before its deadline: a real run may miss it", id, spare)
				}
			}
			var off float64
			for range 5 { // a busy machine holds a run up
				real := performUntil(t, t.Context(), server.URL, file.jobs, "-q")
				if diff := cmp.Diff(ends(real.records), ends(planned)); diff != "" {
					t.Fatalf("how the jobs end (-run +forecast):\n%s", diff)
				}
				off = finish.Seconds()/span(real).Seconds() - 1
				if off > -0.05 && off < 0.05 {
					return
				}
			}
			t.Errorf("the forecast is %v, which is off by %+.1f %%, want at most 5", finish, 100*off)
		})
	}
}

// span returns how long it took from the first job that was read to the last that
// ended.
func span(p *performed) time.Duration {
	first, last := p.inOrder[0].QueuedAt, p.inOrder[0].EndedAt
	for _, r := range p.inOrder {
		if r.QueuedAt.Before(first.Time) {
			first = r.QueuedAt
		}
		if r.EndedAt.After(last.Time) {
			last = r.EndedAt
		}
	}
	return last.Sub(first.Time)
}

// ends tells how each job ended.
func ends(records map[string]results.Record) map[string]string {
	all := make(map[string]string)
	for id, r := range records {
		all[id] = string(r.Status)
		if r.Deferred != nil {
			all[id] += ": " + r.Deferred.Reason
		}
	}
	return all
}

// forecast plans a job file, and returns the records and when the last job ends.
func forecast(t *testing.T, server, jobs string) (map[string]results.Record, time.Duration) {
	t.Helper()
	dir := t.TempDir()
	file, records := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "forecast.jsonl")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"plan", file, "--var", "base=" + server, "--format", "json", "--records", records}
	for host := range strings.FieldsSeq("100 200 250 300 500 600 1100") {
		args = append(args, "--assume", host+"="+host+"ms")
	}
	code, stdout, stderr := run(t.Context(), "", args...)
	var said struct {
		Finish float64 `json:"finish_s"`
		Counts map[results.Status]int
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != 0 {
		t.Fatalf("agentlimit %q: code %d, error %v; stdout\n%s\nstderr\n%s", args, code, err, stdout, stderr)
	}
	data, err := os.Open(records)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	planned, counts := make(map[string]results.Record), make(map[results.Status]int)
	for r, err := range results.Read(data) {
		if err != nil {
			t.Fatal(err)
		}
		planned[r.ID] = r
		counts[r.Status]++
	}
	if diff := cmp.Diff(counts, said.Counts); diff != "" {
		t.Errorf("counts (-records +said):\n%s", diff)
	}
	return planned, time.Duration(said.Finish * float64(time.Second))
}
