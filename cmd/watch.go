package cmd

import (
	"cmp"
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
	each     func(*results.Record) // called for each record; nil: not
	troubles []*trouble            // in the order in which they were met
}

// trouble is why some jobs did not succeed. Jobs that say the same are one.
type trouble struct {
	kind   string // a status, or what [refusal] says
	key    string // whom a refusal is about; for others, it is in reason
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
			w.each(r)
		}
		if r.Status != results.Succeeded {
			w.note(r)
		}
	}
	return nil
}

// note counts a record's trouble with its like.
func (w *watch) note(r *results.Record) {
	t := w.troubleOf(r)
	if t == nil {
		return
	}
	t.jobs++
	if d := r.Deferred; d != nil && !d.RetryAt.IsZero() && (t.retry.IsZero() || d.RetryAt.Before(t.retry)) {
		t.retry = d.RetryAt.Time
	}
}

// troubleOf returns the trouble that a record is a case of, nil if too many kinds
// are known. Refusals of an account are of one kind, though a server may tell
// each job something else.
func (w *watch) troubleOf(r *results.Record) *trouble {
	t := &trouble{kind: string(r.Status), first: r.ID}
	if kind := refusal(r); kind != "" {
		t.kind, t.key = kind, keyOf(r)
	} else {
		t.reason = reasonOf(r)
	}
	known := func(old *trouble) bool {
		return old.kind == t.kind && old.key == t.key && (t.key != "" || old.reason == t.reason)
	}
	switch i := slices.IndexFunc(w.troubles, known); {
	case i >= 0:
		return w.troubles[i]
	case len(w.troubles) == maxTroubles:
		return nil
	}
	if t.key != "" {
		t.reason = cmp.Or(saidBy(r.HTTP), r.Error.Message)
	}
	w.troubles = append(w.troubles, t)
	return t
}

// keyOf names whom a record's trouble is about: the account, or else the host.
func keyOf(r *results.Record) string {
	if r.Account != "" {
		return limits.Key{Kind: limits.Account, Name: r.Account}.String()
	}
	return limits.Key{Kind: limits.Host, Name: r.Host}.String()
}

// reasonOf says why a record is not that of a success.
func reasonOf(r *results.Record) string {
	switch {
	case r.Deferred != nil:
		return r.Deferred.Reason
	case r.Error == nil:
		return ""
	case r.Account != "":
		return keyOf(r) + ": " + r.Error.Message
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
