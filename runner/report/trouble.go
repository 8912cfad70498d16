package report

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

const (
	maxTroubles = 100 // kinds of trouble that are kept apart
	maxReason   = 300 // characters
)

// Trouble is why some jobs did not succeed. Jobs that say the same are one; so are
// refusals of an account, though a server may tell each job something else.
type Trouble struct {
	Kind    string       `json:"kind"`          // a status, or what [refusal] says
	Key     string       `json:"key,omitempty"` // whom a refusal is about; for others, it is in Reason
	Jobs    int64        `json:"jobs"`
	First   string       `json:"first"` // name of the first job
	Reason  string       `json:"reason,omitempty"`
	Said    string       `json:"said,omitempty"`    // the last line that the first job's command wrote to standard error
	RetryAt results.Time `json:"retry_at,omitzero"` // earliest worth trying again, if known
}

// TroubleOf returns the trouble of one job, which users know by name; nil if it
// succeeded.
func TroubleOf(r *results.Record, name string) *Trouble {
	if r.Status == results.Succeeded {
		return nil
	}
	t := &Trouble{Kind: string(r.Status), Jobs: 1, First: name, Reason: Reason(r), Said: LastLine(r)}
	if kind := refusal(r); kind != "" {
		t.Kind, t.Key, t.Reason = kind, keyOf(r), cmp.Or(saidBy(r.HTTP), r.Error.Message)
	}
	t.Reason = clip(t.Reason, maxReason)
	if d := r.Deferred; d != nil {
		t.RetryAt = d.RetryAt
	}
	return t
}

// Why returns the reason, and what the first job's command said of it.
func (t *Trouble) Why() string {
	if t.Said == "" {
		return t.Reason
	}
	return t.Reason + ": " + t.Said
}

// Troubles are kinds of trouble, in the order in which they were met.
type Troubles []*Trouble

// Add counts a trouble with its like. Nil is none.
func (l *Troubles) Add(t *Trouble) {
	if t == nil {
		return
	}
	i := slices.IndexFunc(*l, func(old *Trouble) bool {
		return old.Kind == t.Kind && old.Key == t.Key && (t.Key != "" || old.Reason == t.Reason)
	})
	if i < 0 {
		if len(*l) == maxTroubles {
			return
		}
		first := *t
		first.Jobs = 0
		*l = append(*l, &first)
		i = len(*l) - 1
	}
	old := (*l)[i]
	old.Jobs += t.Jobs
	if !t.RetryAt.IsZero() && (old.RetryAt.IsZero() || t.RetryAt.Before(old.RetryAt.Time)) {
		old.RetryAt = t.RetryAt
	}
}

// untold counts the jobs in trouble that a part of the troubles leaves out.
func (r *Report) untold(told Troubles) int64 {
	n := r.Jobs - r.Statuses[results.Succeeded]
	for _, t := range told {
		n -= t.Jobs
	}
	return n
}

// keyOf names whom a record's trouble is about: the account, or else the host.
func keyOf(r *results.Record) string {
	if r.Account != "" {
		return limits.Key{Kind: limits.Account, Name: r.Account}.String()
	}
	return limits.Key{Kind: limits.Host, Name: r.Host}.String()
}

// Reason says why a record is not that of a success.
func Reason(r *results.Record) string {
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
	if r.Status != results.Failed || r.HTTP == nil || r.Error == nil || n == 0 || r.Attempts[n-1].Hint != nil {
		return ""
	}
	return map[int]string{http.StatusTooManyRequests: "quota", http.StatusForbidden: "refused"}[r.HTTP.Status]
}

// saidBy returns the first line of what a body gives as the reason, whether it is
// JSON or text.
func saidBy(h *results.HTTP) string {
	text := h.Said
	if text == "" && h.Encoding == "" { // the record was read from a file
		text = h.Body
	}
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
	return clip(strings.TrimSpace(line), maxReason)
}

// LastLine returns the last line that a command wrote to standard error, which is
// most often why it failed.
func LastLine(r *results.Record) string {
	if r.Exec == nil || r.Exec.StderrEncoding != "" {
		return ""
	}
	text := strings.TrimSpace(r.Exec.Stderr)
	return clip(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), maxReason)
}

// clip returns a string of its own with at most n characters, the last of them "…"
// if some are left out.
func clip(s string, n int) string {
	count, room := 0, 0
	for i := range s {
		if count++; count == n {
			room = i
		}
		if count > n {
			return s[:room] + "…"
		}
	}
	return strings.Clone(s)
}
