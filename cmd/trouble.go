package cmd

import (
	"fmt"
	"maps"
	"time"

	"agentlimit/runner"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// watch sees the records of a run go by on their way to a sink.
type watch struct {
	runner.Sink
	each     func(*results.Record) // called for each record; nil: not
	hide     func(string) string   // takes out what URLs may not show
	byLine   bool                  // jobs are known by their label "line", not by their id
	troubles report.Troubles
}

// Append passes the records on and looks at them. Their labels may be whole URLs.
func (w *watch) Append(records ...*results.Record) error {
	for _, r := range records {
		r.Labels = maps.Clone(r.Labels) // they are the job's
		for name, text := range r.Labels {
			r.Labels[name] = w.hide(text)
		}
	}
	if err := w.Sink.Append(records...); err != nil {
		return err
	}
	for _, r := range records {
		if w.each != nil {
			w.each(r)
		}
		w.troubles.Add(report.TroubleOf(r, w.nameOf(r)))
	}
	return nil
}

// nameOf returns what users know a job by.
func (w *watch) nameOf(r *results.Record) string {
	if line := r.Labels["line"]; w.byLine && line != "" {
		return line
	}
	return r.ID
}

// tellTrouble tells the kind, the job or how many, and the reason.
func tellTrouble(t *report.Trouble) string {
	who := cut(t.First, targetWidth)
	switch {
	case t.Key != "":
		who = t.Key + ": " + many(t.Jobs, "job")
	case t.Jobs > 1:
		who = fmt.Sprintf("%d jobs, such as %s", t.Jobs, who)
	}
	s := t.Kind + ": " + who
	if why := t.Why(); why != "" {
		s += ": " + why
	}
	if !t.RetryAt.IsZero() {
		s += "; again from " + t.RetryAt.Local().Format(time.RFC3339)
	}
	return printable(s)
}

// recordLine tells of one record in one line.
func recordLine(name string, r *results.Record) string {
	line := fmt.Sprintf("%s: %s", cut(name, lineWidth), r.Status)
	if n := len(r.Attempts); n > 0 {
		line += " in " + brief(r.Attempts[n-1].EndedAt.Sub(r.Attempts[0].StartedAt.Time))
		if n > 1 {
			line += fmt.Sprintf(", %d attempts", n)
		}
	}
	if reason := report.Reason(r); reason != "" {
		line += ": " + reason
	}
	if said := report.LastLine(r); said != "" && r.Error != nil {
		line += ": " + said
	}
	return printable(line)
}
