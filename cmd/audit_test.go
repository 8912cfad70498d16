package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// auditedJobs use a host with a cap, one with a bucket and one that asks for a pause.
const auditedJobs = `
limits:
  hosts:
    capped: {concurrency: 2}
    rated: {rate: 5/s, burst: 2}
jobs:
  - {id: cap-1, host: capped, exec: {shell: sleep 0.3}}
  - {id: cap-2, host: capped, exec: {shell: sleep 0.3}}
  - {id: cap-3, host: capped, exec: {shell: sleep 0.3}}
  - {id: rate-1, host: rated, exec: {argv: ["true"]}}
  - {id: rate-2, host: rated, exec: {argv: ["true"]}}
  - {id: rate-3, host: rated, deadline: 1m, exec: {argv: ["true"]}}
  - id: pause-1
    host: paused
    exec: {shell: 'test $AGENTLIMIT_JOB_ATTEMPT -gt 1 || { echo retry-after: 1 >$AGENTLIMIT_JOB_FEEDBACK; exit 75; }'}
  - {id: pause-2, host: paused, not_before: 500ms, exec: {argv: ["true"]}}
`

// TestAuditCatches alters the records of a real run: what audit proves of them as they
// are, it does not prove then.
func TestAuditCatches(t *testing.T) {
	dir := t.TempDir()
	jobs, file := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "results.jsonl")
	if err := os.WriteFile(jobs, []byte(auditedJobs), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t.Context(), "", "run", jobs, "-o", file); code != 0 {
		t.Fatalf("run: exit code %d\n%s", code, stderr)
	}
	move := func(a *results.Attempt, to time.Time) {
		d := to.Sub(a.AdmittedAt.Time)
		for _, at := range []*results.Time{&a.AdmittedAt, &a.StartedAt, &a.EndedAt} {
			at.Time = at.Add(d)
		}
	}
	for _, test := range []struct {
		what string
		with func(records map[string]*results.Record) (also []*results.Record)
		code int
		want string
	}{
		{"the records as they are", func(map[string]*results.Record) []*results.Record { return nil }, 0, "all limits were kept, nothing was late, lost or doubled"},
		{"one more under way than may be", func(records map[string]*results.Record) []*results.Record {
			// The three run two at a time, so the last begins when another goes on.
			var all []*results.Attempt
			for _, id := range []string{"cap-1", "cap-2", "cap-3"} {
				all = append(all, &records[id].Attempts[0])
			}
			slices.SortFunc(all, func(a, b *results.Attempt) int { return a.AdmittedAt.Compare(b.AdmittedAt.Time) })
			move(all[2], all[1].AdmittedAt.Add(100*time.Millisecond))
			return nil
		}, 1, `concurrency: host/capped: 3 under way where 2 may be, when job "cap-`},
		{"a token more than there was", func(records map[string]*results.Record) []*results.Record {
			records["rate-3"].Attempts[0].Charge[limits.Key{Kind: limits.Host, Name: "rated"}]++
			return nil
		}, 1, " tokens spent within "},
		{"a late start", func(records map[string]*results.Record) []*results.Record {
			r := records["rate-3"]
			r.Deadline.Time = r.Attempts[0].StartedAt.Add(-time.Microsecond)
			return nil
		}, 1, `late: job "rate-3" was started 1µs after its deadline`},
		{"a late start that is not said to be one", func(records map[string]*results.Record) []*results.Record {
			records["rate-3"].Deadline = results.Time{}
			return nil
		}, 1, `late: job "rate-3" was started without its deadline`},
		{"a start that is said to be free", func(records map[string]*results.Record) []*results.Record {
			records["rate-3"].Attempts[0].Charge[limits.Key{Kind: limits.Host, Name: "rated"}] = 0
			return nil
		}, 1, `unpaid: job "rate-3" paid 0 tokens to host/rated where 1 are due`},
		{"a start in a pause", func(records map[string]*results.Record) []*results.Record {
			move(&records["pause-2"].Attempts[0], records["pause-1"].Attempts[0].EndedAt.Add(200*time.Millisecond))
			return nil
		}, 1, `pause: host/paused: job "pause-2" was admitted`},
		{"a doubled job", func(records map[string]*results.Record) []*results.Record {
			return []*results.Record{records["cap-1"]}
		}, 1, `doubled: job "cap-1" has two records of one run`},
		{"a lost job", func(records map[string]*results.Record) []*results.Record {
			delete(records, "cap-2")
			return nil
		}, 1, `lost: job "cap-2" has no record`},
		{"a job that nobody named", func(records map[string]*results.Record) []*results.Record {
			records["cap-2"].ID = "other"
			return nil
		}, 1, `unexpected: job "other" is in no job file`},
	} {
		records := make(map[string]*results.Record)
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range results.Read(f) {
			if err != nil {
				t.Fatal(err)
			}
			records[r.ID] = &r
		}
		f.Close()
		var altered strings.Builder
		w := results.NewWriter(&altered)
		also := test.with(records)
		for _, r := range records {
			also = append(also, r)
		}
		if err := w.Append(also...); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := run(t.Context(), altered.String(), "audit", "-", "--jobs", jobs)
		if code != test.code || !strings.Contains(stdout, test.want) {
			t.Errorf("audit of %s: exit code %d\n%s%swant %d and %q", test.what, code, stdout, stderr, test.code, test.want)
		}
		if code == 1 && !strings.Contains(stderr, "the records break what was promised") {
			t.Errorf("audit of %s: standard error says %q", test.what, stderr)
		}
	}
}
