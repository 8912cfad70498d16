package cmd

import (
	"errors"
	"syscall"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// The exit codes of runs that did not end well. Scripts depend on them.
const (
	exitFailed   = 1   // some jobs failed, are of unknown fate or invalid; or an audit found breaches
	exitUsage    = 2   // bad usage or a bad file: nothing ran
	exitBroken   = 3   // agentlimit could not go on
	exitInUse    = 4   // another run has the results file
	exitDeferred = 75  // "try again later", as EX_TEMPFAIL of sysexits.h; a flag changes it
	exitOwn      = 125 // exec failed, and not its command
	exitSignal   = 128 // and the signal's number
)

// hinted is an error with a way out.
type hinted struct {
	error
	hint string
}

// coded is an error that has an exit code of its own.
type coded struct {
	error // nil: the command has said it all
	code  int
}

// broken is the error of a command that began its work and could not go on.
func broken(err error) error { return &coded{err, exitBroken} }

// Unwrap returns what happened.
func (h *hinted) Unwrap() error { return h.error }
func (c *coded) Unwrap() error  { return c.error }

// unfinished is the error of a run that came to its end, though not by all jobs
// having succeeded.
type unfinished struct {
	runner.Summary
	signal   syscall.Signal // that stopped it; 0: none
	deferred int            // the code if jobs were deferred, and nothing worse
}

// Error says that not all jobs succeeded.
func (u *unfinished) Error() string { return "not all jobs succeeded" }

func (u *unfinished) code() int {
	n := u.Ended
	switch {
	case u.signal != 0:
		return exitSignal + int(u.signal)
	case n[results.Failed]+n[results.Unknown]+n[results.Invalid]+n[results.Interrupted] > 0:
		return exitFailed
	case n[results.Deferred] > 0:
		return u.deferred
	}
	return 0
}

// unsaid returns err, but nil if the summary of the run, or the command, has said it
// all.
func unsaid(err error) error {
	var c *coded
	if errors.As(err, new(*unfinished)) || errors.As(err, &c) && c.error == nil {
		return nil
	}
	return err
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var u *unfinished
	var c *coded
	isCoded := errors.As(err, &c)
	switch {
	case err == nil:
		return 0
	case isCoded && c.code != exitBroken:
		return c.code
	case errors.As(err, &u):
		return u.code()
	case errors.As(err, new(*limits.Conflict)), errors.As(err, new(*heldByParent)):
		return exitUsage
	case isCoded:
		return c.code
	case errors.Is(err, results.ErrInUse):
		return exitInUse
	}
	return exitUsage
}
