package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var percent = regexp.MustCompile(` \d+% +`)

// TestReportSaysWhatTheRunSaid compares, key by key, what a run said at its end with
// what its records say.
func TestReportSaysWhatTheRunSaid(t *testing.T) {
	dir := t.TempDir()
	jobs, file := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "results.jsonl")
	if err := os.WriteFile(jobs, []byte(auditedJobs), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := func(said string) (lines []string) {
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "  host/") {
				// The two count the run's length differently, by some milliseconds.
				lines = append(lines, percent.ReplaceAllString(line, "%"))
			}
		}
		return lines
	}
	_, _, said := run(t.Context(), "", "run", jobs, "-o", file)
	_, reported, _ := run(t.Context(), "", "report", file, "--jobs", jobs)
	if diff := cmp.Diff(keys(said), keys(reported)); diff != "" || len(keys(said)) != 3 {
		t.Errorf("the keys in the report (-run +report):\n%s\nin\n%s", diff, reported)
	}
}
