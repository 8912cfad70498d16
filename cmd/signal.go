package cmd

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// notifySignals begins to take the signals that stop a run: SIGHUP only if it was
// not ignored at the start, as under nohup. From now on a write to a broken
// standard output or standard error is an error, and not the end of the process.
// Commands are not touched by this: what is taken here has its default there,
// while an ignored signal would stay ignored.
func notifySignals() (<-chan os.Signal, func()) {
	stopping := make(chan os.Signal, 4)
	signal.Notify(stopping, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(stopping, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nobody looks
	return stopping, func() { signal.Stop(stopping) }
}

// stopped is why a run was stopped, as the cause of its context.
type stopped struct{ syscall.Signal }

// Error names the signal.
func (s stopped) Error() string { return "stopped by " + s.Signal.String() }

// ends are the two ways in which a run is ended from outside.
type ends struct {
	soft context.Context // nothing more starts
	kill context.Context // what is under way ends at once
}

// takeSignals lets the first signal, or the end of ctx, stop a run, and the second
// kill it; a third has its default effect, whatever happens in here. It calls
// notice at the first. The signals are taken until release is called, which must
// be: it returns the signal that stopped the run, and 0 if none did.
func (p *program) takeSignals(ctx context.Context, notice func()) (_ ends, release func() syscall.Signal) {
	soft, stop := context.WithCancelCause(ctx)
	kill, end := context.WithCancel(context.WithoutCancel(ctx))
	signals, stopNotify := p.notify()
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case s := <-signals:
			stop(stopped{s.(syscall.Signal)})
			notice()
			skipEcho(signals, done)
		case <-done:
			return
		}
		select {
		case <-signals:
			end()
			stopNotify()
		case <-done:
		}
	}()
	return ends{soft, kill}, func() syscall.Signal {
		close(done)
		<-gone
		stopNotify()
		defer end()
		defer stop(nil)
		return stoppedBy(soft)
	}
}

// echo is how soon after the first signal another is the same one once more: timeout(1) signals its child and then its whole group.
const echo = 100 * time.Millisecond

// skipEcho takes what comes within that time.
func skipEcho(signals <-chan os.Signal, done <-chan struct{}) {
	over := time.After(echo)
	for {
		select {
		case <-signals:
		case <-over:
			return
		case <-done:
			return
		}
	}
}

// stoppedBy returns the signal that ended ctx, SIGTERM if it ended without one,
// and 0 if it did not end.
func stoppedBy(ctx context.Context) syscall.Signal {
	if s, found := errors.AsType[stopped](context.Cause(ctx)); found {
		return s.Signal
	}
	if ctx.Err() != nil {
		return syscall.SIGTERM
	}
	return 0
}
