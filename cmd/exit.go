package cmd

import (
	"errors"
	"syscall"

	"agentlimit/limits"
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
	error // nil: the command, or the summary of the run, has said it all
	code  int
}

// broken is the error of a command that began its work and could not go on, unless err
// says better what was wrong.
func broken(err error) error {
	if errors.As(err, new(*coded)) || errors.As(err, new(*limits.Conflict)) {
		return err
	}
	return &coded{err, exitBroken}
}

// Unwrap returns what happened.
func (h *hinted) Unwrap() error { return h.error }
func (c *coded) Unwrap() error  { return c.error }

// codeOfRun returns the exit code of a run that came to its end with so many jobs ended
// in each way, or was stopped by a signal (0: none); deferred is the code if some were,
// and nothing is worse.
func codeOfRun(n map[results.Status]int64, signal syscall.Signal, deferred int) int {
	switch {
	case signal != 0:
		return exitSignal + int(signal)
	case n[results.Failed]+n[results.Unknown]+n[results.Invalid]+n[results.Interrupted] > 0:
		return exitFailed
	case n[results.Deferred] > 0:
		return deferred
	}
	return 0
}

// unsaid returns err, but nil if all of it is said.
func unsaid(err error) error {
	if c, found := errors.AsType[*coded](err); found && c.error == nil {
		return nil
	}
	return err
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var c *coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, results.ErrInUse):
		return exitInUse
	}
	return exitUsage
}
