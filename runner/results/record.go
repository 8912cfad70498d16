// Package results holds the record that every job ends with, the one writer of
// a results file, and its reader.
package results

import (
	"time"

	"agentlimit/limits"
)

// Status is how a job ended.
type Status string

// The statuses a record may have.
const (
	Succeeded   Status = "succeeded"
	Failed      Status = "failed"
	Deferred    Status = "deferred"    // not started, or not tried again: it could not be in time
	Unknown     Status = "unknown"     // sent, without an answer, and not safe to repeat
	Interrupted Status = "interrupted" // under way when the run was stopped
	Invalid     Status = "invalid"     // a bad line of a pipe
)

// Statuses are all of them, in the order in which they are told.
var Statuses = [...]Status{Succeeded, Failed, Unknown, Interrupted, Invalid, Deferred}

// Record is one line of a results file: the one truthful end of one job.
type Record struct {
	V        int               `json:"v"` // of the format: 1, whatever the writer is given
	Run      string            `json:"run"`
	ID       string            `json:"id"`
	Status   Status            `json:"status"`
	Kind     string            `json:"kind,omitempty"` // "http" or "exec"
	Host     string            `json:"host,omitempty"`
	Account  string            `json:"account,omitempty"`
	Pools    []string          `json:"pools,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Deadline Time              `json:"deadline,omitzero"`
	Hash     string            `json:"hash,omitempty"`
	QueuedAt Time              `json:"queued_at,omitzero"`
	EndedAt  Time              `json:"ended_at"`
	Attempts []Attempt         `json:"attempts,omitempty"`
	HTTP     *HTTP             `json:"http,omitempty"`
	Exec     *Exec             `json:"exec,omitempty"`
	Deferred *Deferral         `json:"deferred,omitempty"`
	Error    *Error            `json:"error,omitempty"`
}

// Attempt is one try of a job.
type Attempt struct {
	Host       string               `json:"host,omitempty"`
	AdmittedAt Time                 `json:"admitted_at"`
	StartedAt  Time                 `json:"started_at"`
	EndedAt    Time                 `json:"ended_at"`
	Charge     map[limits.Key]int64 `json:"charge,omitempty"` // tokens paid, by key; 0: a permit only
	Waited     Waits                `json:"waited"`
	Hint       *Hint                `json:"hint,omitempty"`
	Outcome    string               `json:"outcome"`
	Status     int                  `json:"status,omitempty"`
	Location   string               `json:"location,omitempty"` // where a redirect points
	ExitCode   *int                 `json:"exit_code,omitempty"`
	Error      string               `json:"error,omitempty"`
}

// Waits is how long an attempt waited before it was admitted, by cause, in
// milliseconds. The parts add up to Total.
type Waits struct {
	Total     float64 `json:"total_ms"`
	Global    float64 `json:"global_ms"`
	Host      float64 `json:"host_ms"`
	Account   float64 `json:"account_ms"`
	Pool      float64 `json:"pool_ms"`
	Rate      float64 `json:"rate_ms"`
	Pause     float64 `json:"pause_ms"`
	Backoff   float64 `json:"backoff_ms"`
	NotBefore float64 `json:"not_before_ms"`
}

// Causes name the parts of a wait, in the order of admission.
var Causes = [...]string{"global", "host", "account", "pool", "rate", "pause", "backoff", "not before"}

// Parts returns the parts of w by their place in [Causes].
func (w *Waits) Parts() [len(Causes)]*float64 {
	return [...]*float64{&w.Global, &w.Host, &w.Account, &w.Pool, &w.Rate, &w.Pause, &w.Backoff, &w.NotBefore}
}

// Add adds other to w so many times; -1 takes it away.
func (w *Waits) Add(other Waits, times float64) {
	w.Total += times * other.Total
	parts := other.Parts()
	for cause, ms := range w.Parts() {
		*ms += times * *parts[cause]
	}
}

// Hint is what a service said about when to come back.
type Hint struct {
	Source string      `json:"source"` // such as "retry-after"
	Raw    string      `json:"raw"`    // as the service wrote it
	Key    *limits.Key `json:"key,omitempty"`
	Until  Time        `json:"until,omitzero"`
}

// HTTP is the last answer of a request.
type HTTP struct {
	Status    int                 `json:"status"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers,omitempty"`
	Body      string              `json:"body"`
	Encoding  string              `json:"encoding,omitempty"` // "base64" if the body is not UTF-8
	BodyBytes int64               `json:"body_bytes"`         // whole length, kept or not
	Truncated bool                `json:"truncated"`
	Redacted  bool                `json:"redacted,omitempty"`
	Saved     string              `json:"saved,omitempty"` // path of the whole body

	// Said is the text of a 403 or 429 as messages may show it: without secrets of
	// any length. It is not written.
	Said string `json:"-"`
}

// Exec is how a command ended.
type Exec struct {
	ExitCode    int    `json:"exit_code"` // -1 if a signal ended it
	Signal      string `json:"signal"`    // such as "SIGTERM"; empty if it exited
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`

	StdoutEncoding  string `json:"stdout_encoding,omitempty"`
	StderrEncoding  string `json:"stderr_encoding,omitempty"`
	StdoutTruncated bool   `json:"stdout_truncated,omitzero"`
	StderrTruncated bool   `json:"stderr_truncated,omitzero"`
	StdoutRedacted  bool   `json:"stdout_redacted,omitzero"`
	StderrRedacted  bool   `json:"stderr_redacted,omitzero"`
	Saved           string `json:"saved,omitempty"` // path of the whole standard output
}

// Deferral says why a job was deferred.
type Deferral struct {
	Reason   string      `json:"reason"`
	Key      *limits.Key `json:"key,omitempty"`
	Deadline Time        `json:"deadline,omitzero"`
	RetryAt  Time        `json:"retry_at,omitzero"` // earliest time worth trying again, if known
}

// Error is why a job did not succeed.
type Error struct {
	Kind    string `json:"kind"` // such as "timeout", "status", "exit", "connect"
	Message string `json:"message"`
}

// Bounds are a limit in the words of what programs read: as fields of whatever it is of.
type Bounds struct {
	Concurrency int64  `json:"concurrency,omitempty"`
	Rate        string `json:"rate,omitempty"`
	Burst       int64  `json:"burst,omitempty"`
}

// BoundsOf returns a limit so.
func BoundsOf(l limits.Limit) Bounds {
	if l.Rate.Per == 0 {
		return Bounds{Concurrency: l.Concurrency}
	}
	return Bounds{l.Concurrency, l.Rate.String(), l.Burst}
}

// Time is a moment that is written in RFC 3339 with nine digits, in UTC. The
// zero Time is none.
type Time struct{ time.Time }

// At returns t as a record shows it: the zero Time if t is none or Never.
func At(t limits.Time) Time {
	if t == 0 || t == limits.Never {
		return Time{}
	}
	return Time{t.Wall()}
}

// Limits returns t as a coordinator counts it, and zero if t is none.
func (t Time) Limits() limits.Time {
	if t.IsZero() {
		return 0
	}
	return limits.TimeOf(t.Time)
}

// MarshalJSON writes nine digits, always.
func (t Time) MarshalJSON() ([]byte, error) {
	return appendTime(nil, t), nil
}
