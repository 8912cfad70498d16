// Package call makes one attempt of a job: a request or a command. It decides
// nothing about limits, deadlines or retries; it reports what happened.
//
// Requests. A request is sent once at most: if its connection ends before the answer,
// the attempt is lost, and the limits decide about another. net/http writes requests and
// reads answers; its client, which repeats some by itself, is not used. They go over
// HTTP/1.1, one at a time on a connection, which is kept for two seconds for the next,
// and which nothing has come on when that begins. Redirects are results, cookies are not kept,
// and bodies are recorded as they came: compression is not asked for. A status
// that the job does not expect is the answer even if the body behind it breaks
// off. Proxies are taken from the job, else from the environment.
//
// Commands. A command runs in a session of its own, without a terminal, with
// empty input if none is given and with the default signals (but SIGHUP or SIGINT
// stay ignored that were when this process began, and that it does not handle).
// Its attempt ends when it ends, whatever it leaves in the background: that may
// write for a tenth of a second more and gets a broken pipe after that. A command
// that is ended gets TERM, with its whole process group, and KILL when the grace
// is over.
//
// Both. What is recorded is capped and free of secrets; the whole length is
// counted. A file to save into is replaced when the attempt is OK, whole, as the
// bytes came; anything but a regular file is refused before the call. A body is matched
// within its first MiB. Memory does not depend on the length of a stream or of a body
// file.
package call

import (
	"context"
	"io"
	"os"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// Caller makes attempts. It is safe for use by many goroutines.
type Caller interface {
	// Call makes one attempt and returns when it has ended on our side: answer
	// read, connection closed, process group gone. Cancelling ctx ends it early:
	// a request at once, a command with TERM first and KILL after a while. It does
	// not panic and never blocks longer.
	Call(ctx context.Context, a Attempt) Outcome

	// Close ends at once every attempt under way, those in their grace too.
	// Attempts made later are cancelled. It may be called more than once.
	Close()
}

// Attempt is what a [Caller] is asked to make.
type Attempt struct {
	Job      *jobspec.Job
	From     *jobspec.Job // Job before it was redirected, with its body file and its secrets; nil: Job
	Number   int          // from 1
	Deadline time.Time    // of the job, for the command's environment; zero: none
	Keys     []string     // the keys whose permits it holds, for the command's environment
	// Sending is called, if not nil, before the first byte leaves; an error ends
	// the attempt unsent.
	Sending func() error
	// Permit returns a file for the command to inherit, so that its permit counts as
	// long as it lives; nil: there is none.
	Permit func(context.Context) (*os.File, error)
	// Stdout and Stderr are given what the command writes, and the former the body of
	// an answer, whole and with its secrets, while it comes; nil: nobody. Their errors
	// are for themselves to keep.
	Stdout, Stderr io.Writer
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
	Kind  Kind
	Sent  bool          // the other side may have seen the call, and no whole answer came
	HTTP  *results.HTTP // nil unless an answer was received
	Exec  *results.Exec // nil unless the command ran
	Error *results.Error
	// Location is where a redirect points, as the answer says it: it may hold
	// secrets, and is not for the record. Empty if the answer is none.
	Location string `json:"-"`
	Hint     *Hint  // nil: nothing was said about when to come back
}
