package report

import (
	"cmp"
	"iter"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// Standing returns the records of one results file, without the bad lines of all runs
// but the last: a bad line has no name but its place in what one run read, and the run
// that goes on reads all of it anew. Runs that overlap are none of one file.
func Standing(records iter.Seq2[results.Record, error]) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		var bad []results.Record // of the last run so far
		var run string
		var end limits.Time // of all before it
		for r, err := range records {
			if err == nil && r.Run != run {
				if cmp.Or(r.QueuedAt.Limits(), r.EndedAt.Limits()) > end {
					bad = nil
				}
				run = r.Run
			}
			end = max(end, r.EndedAt.Limits())
			if err == nil && r.Status == results.Invalid {
				bad = append(bad, r)
			} else if !yield(r, err) {
				return
			}
		}
		for _, r := range bad {
			if !yield(r, nil) {
				return
			}
		}
	}
}
