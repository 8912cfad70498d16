// Package call makes one attempt of a job: a request or a command. It decides
// nothing about limits, deadlines or retries; it reports what happened.
package call

import (
	"context"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// Caller makes attempts. It is safe for use by many goroutines.
type Caller interface {
	// Call makes one attempt and returns when it has ended on our side: answer
	// read, connection closed, process group gone. Cancelling ctx ends it early:
	// a request at once, a command with TERM first and KILL after a while (at
	// once if the cause is [ErrKill]). It does not panic and never blocks longer.
	Call(ctx context.Context, a Attempt) Outcome

	// Close ends at once every attempt under way, those in their grace too.
	// Attempts made later are cancelled. It may be called more than once.
	Close()
}

// Attempt is what a [Caller] is asked to make.
type Attempt struct {
	Job      *jobspec.Job
	Number   int       // from 1
	Deadline time.Time // of the job, for the command's environment; zero: none
	Keys     []string  // the keys whose permits it holds, for the command's environment
	// Sending is called, if not nil, before the first byte leaves; an error ends
	// the attempt unsent.
	Sending func() error
}

// Kind says how an attempt ended.
type Kind string

// The kinds of outcome. OK and Answered carry an answer.
const (
	OK        Kind = "ok"
	Answered  Kind = "failed"    // a status, exit code or body that the job does not expect
	Timeout   Kind = "timeout"   // the attempt took longer than the job's timeout
	Cancelled Kind = "cancelled" // the run was stopped
	Refused   Kind = "refused"   // the connection failed before anything was sent
	Lost      Kind = "lost"      // the connection failed later, without a whole answer
	Broken    Kind = "error"     // it cannot work: bad certificate, missing program or file
)

// Outcome is how one attempt ended.
type Outcome struct {
	Kind    Kind
	Sent    bool // the other side may have seen the call, and no whole answer came
	Started time.Time
	Ended   time.Time
	HTTP    *results.HTTP // nil unless an answer was received
	Exec    *results.Exec // nil unless the command ran
	Error   *results.Error
	Hint    *results.Hint
}
