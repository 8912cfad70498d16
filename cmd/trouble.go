package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

const (
	maxTroubles = 100 // kinds of trouble that a run remembers
	maxReason   = 200 // columns of a server's reason
)

// watch sees the records of a run go by on their way to a sink.
type watch struct {
	runner.Sink
	each     func(*results.Record) // called for each record; nil: not
	hide     func(string) string   // takes out what URLs may not show
	byLine   bool                  // jobs are known by their label "line", not by their id
	troubles []*trouble            // in the order in which they were met
}

// trouble is why some jobs did not succeed. Jobs that say the same are one; so are
// refusals of an account, though a server may tell each job something else.
type trouble struct {
	Kind    string       `json:"kind"`          // a status, or what [refusal] says
	Key     string       `json:"key,omitempty"` // whom a refusal is about; for others, it is in Reason
	Jobs    int64        `json:"jobs"`
	First   string       `json:"first"` // id of the first job
	Reason  string       `json:"reason,omitempty"`
	Said    string       `json:"said,omitempty"`    // the last line that the first job's command wrote to standard error
	RetryAt results.Time `json:"retry_at,omitzero"` // earliest worth trying again, if known
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
		if r.Status != results.Succeeded {
			w.note(r)
		}
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

// note counts a record's trouble with its like.
func (w *watch) note(r *results.Record) {
	t := &trouble{Kind: string(r.Status), First: w.nameOf(r), Reason: reasonOf(r), Said: lastLine(r)}
	if kind := refusal(r); kind != "" {
		t.Kind, t.Key, t.Reason = kind, keyOf(r), cmp.Or(saidBy(r.HTTP), r.Error.Message)
	}
	i := slices.IndexFunc(w.troubles, func(old *trouble) bool {
		return old.Kind == t.Kind && old.Key == t.Key && (t.Key != "" || old.Reason == t.Reason)
	})
	switch {
	case i >= 0:
		t = w.troubles[i]
	case len(w.troubles) < maxTroubles:
		w.troubles = append(w.troubles, t)
	}
	t.Jobs++
	if d := r.Deferred; d != nil && !d.RetryAt.IsZero() && (t.RetryAt.IsZero() || d.RetryAt.Before(t.RetryAt.Time)) {
		t.RetryAt = d.RetryAt
	}
}

// String tells the kind, the job or how many, and the reason.
func (t *trouble) String() string {
	who := t.First
	switch {
	case t.Key != "":
		who = t.Key + ": " + many(t.Jobs, "job")
	case t.Jobs > 1:
		who = fmt.Sprintf("%d jobs, such as %s", t.Jobs, t.First)
	}
	s := t.Kind + ": " + who
	if t.Reason != "" {
		s += ": " + t.Reason
	}
	if t.Said != "" {
		s += ": " + t.Said
	}
	if !t.RetryAt.IsZero() {
		s += "; again from " + t.RetryAt.Local().Format(time.RFC3339)
	}
	return printable(s)
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

// refusal says what to call a failure that waiting does not help: the server
// refuses and says nothing of when to come back. Empty: it is none.
func refusal(r *results.Record) string {
	n := len(r.Attempts)
	if r.Status != results.Failed || r.HTTP == nil || n == 0 || r.Attempts[n-1].Hint != nil {
		return ""
	}
	return map[int]string{http.StatusTooManyRequests: "quota", http.StatusForbidden: "refused"}[r.HTTP.Status]
}

// saidBy returns the first line of what a refusal gives as the reason, whether it is
// JSON or text.
func saidBy(h *results.HTTP) string {
	text := h.Said
	var body map[string]any
	if json.Unmarshal([]byte(text), &body) == nil {
		inner, _ := body["error"].(map[string]any)
		text = ""
		for _, place := range []any{inner["message"], body["message"], body["error"], body["detail"]} {
			if found, _ := place.(string); text == "" {
				text = found
			}
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cut(printable(strings.TrimSpace(line)), maxReason)
}

// lastLine returns the last line that a command wrote to standard error, which is
// most often why it failed.
func lastLine(r *results.Record) string {
	if r.Exec == nil || r.Exec.StderrEncoding != "" {
		return ""
	}
	text := strings.TrimSpace(r.Exec.Stderr)
	return cut(printable(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])), maxReason)
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
	if reason := reasonOf(r); reason != "" {
		line += ": " + reason
	}
	if said := lastLine(r); said != "" && r.Error != nil {
		line += ": " + said
	}
	return printable(line)
}
