package cmd

import (
	"fmt"
	"slices"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// maxTroubles bounds how many kinds of trouble a run remembers.
const maxTroubles = 100

// watch sees the records of a run go by on their way to a sink.
type watch struct {
	runner.Sink
	each     func(line string) // called for each record; nil: not
	troubles []*trouble        // in the order in which they were met
}

// trouble is why some jobs did not succeed. Jobs that say the same are one.
type trouble struct {
	status results.Status
	reason string
	first  string // id of the first job
	jobs   int64
	retry  time.Time // earliest time worth trying again; zero if unknown
}

// Append passes the records on and looks at them.
func (w *watch) Append(records ...*results.Record) error {
	if err := w.Sink.Append(records...); err != nil {
		return err
	}
	for _, r := range records {
		if w.each != nil {
			w.each(recordLine(r))
		}
		if r.Status != results.Succeeded {
			w.note(r)
		}
	}
	return nil
}

// note counts a record's trouble with its like.
func (w *watch) note(r *results.Record) {
	reason := reasonOf(r)
	i := slices.IndexFunc(w.troubles, func(t *trouble) bool { return t.status == r.Status && t.reason == reason })
	if i < 0 {
		if len(w.troubles) == maxTroubles {
			return
		}
		i = len(w.troubles)
		w.troubles = append(w.troubles, &trouble{status: r.Status, reason: reason, first: r.ID})
	}
	t := w.troubles[i]
	t.jobs++
	if d := r.Deferred; d != nil && !d.RetryAt.IsZero() && (t.retry.IsZero() || d.RetryAt.Before(t.retry)) {
		t.retry = d.RetryAt.Time
	}
}

// reasonOf says why a record is not that of a success.
func reasonOf(r *results.Record) string {
	switch {
	case r.Deferred != nil:
		return r.Deferred.Reason
	case r.Error == nil:
		return ""
	case r.Account != "":
		return limits.Key{Kind: limits.Account, Name: r.Account}.String() + ": " + r.Error.Message
	}
	return r.Error.Message
}

// recordLine tells of one record in one line.
func recordLine(r *results.Record) string {
	line := fmt.Sprintf("%s: %s", r.ID, r.Status)
	if n := len(r.Attempts); n > 0 {
		took := r.Attempts[n-1].EndedAt.Sub(r.Attempts[0].StartedAt.Time)
		line += fmt.Sprintf(" in %s", brief(took))
		if n > 1 {
			line += fmt.Sprintf(", %d attempts", n)
		}
	}
	if reason := reasonOf(r); reason != "" {
		line += ": " + reason
	}
	return printable(line)
}
