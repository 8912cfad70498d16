package call

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// A failure is why an attempt is not OK, as its record will say it.
//
//	code       outcome    meaning
//	status     failed     a status that the job does not expect
//	exit       failed     an exit code that the job does not expect
//	signal     failed     a signal from elsewhere ended the command
//	body       failed     the body or standard output does not match
//	timeout    timeout    the attempt took longer than the job's timeout
//	cancelled  cancelled  the run was stopped
//	connect    refused    no connection, or it was gone before anything was sent
//	system     refused    this machine is short of file handles, processes or memory
//	lost       lost       sent, and the connection failed before the whole answer
//	tls        error      a certificate or a TLS setting does not do
//	proxy      error      the proxy does not let the request through
//	request    error      the request cannot be sent as written
//	spawn      error      the command cannot be started
//	file       error      a file to send, to read or to save into does not do
//	unsent     error      Attempt.Sending held the attempt back
type failure struct {
	kind Kind
	code string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(kind Kind, code, format string, args ...any) *failure {
	return &failure{kind, code, fmt.Errorf(format, args...)}
}

// classify says what an error means that ended an attempt. An error that is no
// failure yet comes from ctx or from the network.
func classify(ctx context.Context, err error, t *attempt) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	cause := context.Cause(ctx)
	switch {
	case cause == errTimeout && t.Job.Exec != nil:
		return fail(Timeout, "timeout", "not done within %v", t.Job.Timeout)
	case cause == errTimeout && t.out.Sent:
		return fail(Timeout, "timeout", "no whole answer within %v", t.Job.Timeout)
	case cause == errTimeout:
		return fail(Timeout, "timeout", "no connection within %v", t.Job.Timeout)
	case cause != nil:
		return fail(Cancelled, "cancelled", "cancelled: %w", cause)
	case t.out.Sent:
		return &failure{Lost, "lost", err}
	case isShortage(err):
		return shortage(err)
	case isTLS(err):
		return &failure{Broken, "tls", err}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return &failure{Refused, "connect", err}
	}
	return &failure{Broken, "request", err}
}

// isShortage reports whether err says that the machine lacks something now that
// it may have later: handles, processes, memory, or a program that is just being
// written.
func isShortage(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ETXTBSY} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// shortage names the limit that was hit. Nothing was sent, so it is as harmless
// as a refused connection and repeated like one.
func shortage(err error) *failure {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		err = fmt.Errorf("out of file handles (see ulimit -n): %w", err)
	case errors.Is(err, syscall.EAGAIN):
		err = fmt.Errorf("out of processes (see ulimit -u): %w", err)
	}
	return &failure{Refused, "system", err}
}

// fileFailure says what it means that a file of the job does not do, before
// anything was sent.
func fileFailure(doing string, err error) *failure {
	if isShortage(err) {
		return shortage(err)
	}
	return fail(Broken, "file", "%s: %w", doing, err)
}

// isTLS reports whether err says that the two sides will not agree on TLS,
// however often they try.
func isTLS(err error) bool {
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	return cert || header || isAlert(err) || errors.Is(err, http.ErrSchemeMismatch)
}

// isAlert reports whether err is a TLS alert from the other side.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // as crypto/tls spells it; the alerts have no exported type
}
