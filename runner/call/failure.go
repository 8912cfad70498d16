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
	case cause == errTimeout && !t.out.Sent:
		return fail(Timeout, "timeout", "not sent within %v", t.Job.Timeout)
	case cause == errTimeout:
		return fail(Timeout, "timeout", "not done within %v", t.Job.Timeout)
	case cause != nil:
		return fail(Cancelled, "cancelled", "cancelled: %w", cause)
	case t.out.Sent:
		return &failure{Lost, "lost", err}
	case isTLS(err):
		return &failure{Broken, "tls", err}
	}
	if short := shortage(err); short != nil {
		return short
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return &failure{Refused, "connect", err}
	}
	return &failure{Broken, "request", err}
}

// cannot says what an error means that came before anything was sent.
func cannot(code, doing string, err error) error {
	if errors.As(err, new(*failure)) {
		return err
	}
	if short := shortage(err); short != nil {
		return short
	}
	if errors.Is(err, syscall.E2BIG) {
		err = fmt.Errorf("an argument or variable is longer than this system allows (128 KiB each on Linux), or all together are (see getconf ARG_MAX): %w", err)
	}
	return fail(Broken, code, "%s: %w", doing, err)
}

// shortages are what the machine may have too little of now and enough later.
var shortages = []struct {
	errno syscall.Errno
	says  string
}{
	{syscall.EMFILE, "out of file handles (see ulimit -n)"},
	{syscall.ENFILE, "out of file handles (see ulimit -n)"},
	{syscall.EBADF, "out of file handles (see ulimit -n)"}, // a handle's number would be beyond the limit
	{syscall.EAGAIN, "out of processes (see ulimit -u)"},
	{syscall.ENOMEM, "out of memory"},
	{syscall.ETXTBSY, "the program is just being written"},
}

// shortage returns nil if err is none. Nothing was sent, so it is as harmless as
// a refused connection and repeated like one.
func shortage(err error) *failure {
	for _, s := range shortages {
		if errors.Is(err, s.errno) {
			return fail(Refused, "system", "%s: %w", s.says, err)
		}
	}
	return nil
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
