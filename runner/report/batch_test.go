package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// TestBatch writes each way in which a request may have ended.
func TestBatch(t *testing.T) {
	at := func(second int) results.Time { return results.Time{Time: time.Unix(int64(second), 0)} }
	answer := func(status int, body string) *results.HTTP {
		return &results.HTTP{Status: status, Body: body, BodyBytes: int64(len(body)), Headers: map[string][]string{"X-Request-Id": {"req-1"}}}
	}
	cut := answer(200, `{"a":`)
	cut.Truncated, cut.BodyBytes = true, 9
	all := []results.Record{
		{ID: "a", Status: results.Failed, EndedAt: at(1), HTTP: answer(500, "oops"), Error: &results.Error{Kind: "status", Message: "status 500"}},
		{ID: "b", Status: results.Failed, EndedAt: at(2), HTTP: answer(400, `{"error": {"code": "<bad>"}}`), Error: &results.Error{Kind: "status", Message: "status 400"}},
		{ID: "a", Status: results.Succeeded, EndedAt: at(3), HTTP: answer(200, `{"é": 1.50}`)},
		{ID: "c", Status: results.Deferred, EndedAt: at(3), HTTP: answer(429, ``), Deferred: &results.Deferral{Reason: "no token"}},
		{ID: "d", Kind: "http", Status: results.Unknown, EndedAt: at(3), Error: &results.Error{Kind: "timeout", Message: "no answer"}},
		{ID: "e", Status: results.Succeeded, EndedAt: at(3), HTTP: cut},
		{ID: "f", Kind: "exec", Status: results.Succeeded, EndedAt: at(3), Exec: &results.Exec{}},
		{ID: "g", Status: results.Failed, EndedAt: at(3), HTTP: answer(200, "no"), Error: &results.Error{Kind: "body", Message: "it does not match"}},
	}
	records := func(yield func(results.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
	var got strings.Builder
	if err := report.Batch(&got, records, records); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"custom_id":"b","response":{"status_code":400,"request_id":"req-1","body":{"error":{"code":"<bad>"}}},"error":null}`,
		`"custom_id":"a","response":{"status_code":200,"request_id":"req-1","body":{"é":1.50}},"error":null}`,
		`"custom_id":"c","response":null,"error":{"code":"deferred","message":"no token"}}`,
		`"custom_id":"d","response":null,"error":{"code":"timeout","message":"no answer"}}`,
		`"custom_id":"e","response":{"status_code":200,"request_id":"req-1","body":"{\"a\":"},"error":{"code":"truncated","message":"5 bytes were kept of a body of 9: output.inline says how many"}}`,
		`"custom_id":"g","response":{"status_code":200,"request_id":"req-1","body":"no"},"error":{"code":"body","message":"it does not match"}}`,
	}
	var lines []string
	ids := make(map[string]bool)
	for line := range strings.Lines(got.String()) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
		if !strings.HasPrefix(id, `{"id":"batch_req_`) || ids[id] {
			t.Errorf("the id %s", id)
		}
		ids[id] = true
		lines = append(lines, rest)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("Batch (-want +got):\n%s", diff)
	}
}
