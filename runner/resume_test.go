package runner_test

import (
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// written returns records as a file hands them out.
func written(records ...results.Record) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestPastIsLeftOut(t *testing.T) {
	record := func(id string, status results.Status) results.Record {
		return results.Record{ID: id, Status: status, Hash: "sha256:same", Run: "old"}
	}
	for _, row := range []struct {
		name         string
		past         []results.Record // of job-1
		retryUnknown bool
		runs         bool
		changed      bool
	}{
		{"without a record", nil, false, true, false},
		{"succeeded", []results.Record{record("job-1", results.Succeeded)}, false, false, false},
		{"failed", []results.Record{record("job-1", results.Failed)}, false, true, false},
		{"deferred", []results.Record{record("job-1", results.Deferred)}, false, true, false},
		{"interrupted", []results.Record{record("job-1", results.Interrupted)}, false, true, false},
		{"of unknown fate", []results.Record{record("job-1", results.Unknown)}, false, false, false},
		{"of unknown fate, and asked for", []results.Record{record("job-1", results.Unknown)}, true, true, false},
		{"failed, then succeeded", []results.Record{record("job-1", results.Failed), record("job-1", results.Succeeded)}, false, false, false},
		{"of another job", []results.Record{record("job-2", results.Succeeded)}, false, true, false},
		{"succeeded, with another call", []results.Record{{ID: "job-1", Status: results.Succeeded, Hash: "sha256:other"}}, false, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			past, err := runner.ReadPast(t.Context(), written(row.past...))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				j := job(1, "h", "a")
				j.Hash = "sha256:same"
				w := newWorld(caps(t, 1, 1), takes(time.Second), j)
				changed := false
				w.Past, w.RetryUnknown = past, row.retryUnknown
				w.Changed = func(*jobspec.Job) { changed = true }
				w.run(t, t.Context())
				if runs := len(w.sink.records) == 1; runs != row.runs || changed != row.changed {
					t.Errorf("it ran: %v, changed: %v; want %v, %v", runs, changed, row.runs, row.changed)
				}
				if sum := w.Stats.Summary(); sum.Jobs != 1 || (sum.Earlier == 1) == row.runs {
					t.Errorf("counted %d of %d jobs as done before, want it counted if it does not run", sum.Earlier, sum.Jobs)
				}
			})
		})
	}
}

func TestReadPast(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	pair := limits.PairKey("h", "a")
	past, err := runner.ReadPast(t.Context(), written(
		results.Record{ID: "a", Run: "1", Attempts: []results.Attempt{
			{Hint: &results.Hint{Key: &pair, Until: results.Time{Time: at}}},
			{Hint: &results.Hint{Until: results.Time{Time: at}}}, // about nobody but the job
		}},
		results.Record{ID: "b", Run: "1"},
		results.Record{ID: "b", Run: "2"},
	))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]limits.PauseRequest{{Key: pair, Until: limits.TimeOf(at)}}, past.Pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	for of, want := range map[[2]string]bool{
		{"1", "a"}: true,
		{"2", "a"}: false, // sent once more, and no record of that
		{"2", "b"}: true,
		{"1", "c"}: false,
	} {
		if got := past.Ended(of[0], of[1]); got != want {
			t.Errorf("Ended(%q, %q) = %v, want %v", of[0], of[1], got, want)
		}
	}
	broken := errors.New("line 3")
	if _, err := runner.ReadPast(t.Context(), func(yield func(results.Record, error) bool) { yield(results.Record{}, broken) }); err != broken {
		t.Errorf("ReadPast of what cannot be read: error %v, want %v", err, broken)
	}
}
