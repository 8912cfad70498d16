package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

func TestStanding(t *testing.T) {
	of := func(run, id string, at limits.Time, status results.Status) results.Record {
		r := results.Record{Run: run, ID: id, Status: status, EndedAt: results.At(began + at)}
		if status != results.Invalid {
			r.QueuedAt = results.At(began + at - second)
		}
		return r
	}
	first := []results.Record{
		of("1", "<stdin>:1", 2*second, results.Invalid), of("1", "a", 5*second, results.Succeeded), of("1", "<stdin>:3", 6*second, results.Invalid),
	}
	for _, test := range []struct {
		name string
		more []results.Record
		want string
	}{
		{"nothing follows", nil, "a <stdin>:1 <stdin>:3 "},
		{"a run that went on, and found one line repaired", []results.Record{
			of("2", "<stdin>:3", 9*second, results.Invalid), of("2", "b", 11*second, results.Failed)}, "a b <stdin>:3 "},
		{"a run that went on, and found no bad line", []results.Record{of("2", "b", 11*second, results.Failed)}, "a b "},
		{"a run at the same time", []results.Record{
			of("2", "<stdin>:1", 3*second, results.Invalid), of("2", "b", 5*second, results.Failed)}, "a b <stdin>:1 <stdin>:3 <stdin>:1 "},
	} {
		var got strings.Builder
		for r := range Standing(listed(append(first, test.more...)...)) {
			got.WriteString(r.ID + " ")
		}
		if diff := cmp.Diff(test.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
