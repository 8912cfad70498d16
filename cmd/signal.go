package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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

// takeSignals ends the first context, on which nothing more starts, at the first
// signal or with ctx, and the second, on which all that is under way ends, at the
// second signal; a third has its default effect, whatever happens in here. It
// calls notice at the first. The signals are taken until release is called, which
// must be: it returns the signal that stopped the run (SIGTERM for the end of
// ctx), and 0 if none did.
func (p *program) takeSignals(ctx context.Context, notice func()) (soft, kill context.Context, release func() syscall.Signal) {
	soft, stop := context.WithCancel(ctx)
	kill, end := context.WithCancel(context.WithoutCancel(ctx))
	signals, stopNotify := p.notify()
	done, gone := make(chan struct{}), make(chan struct{})
	var by syscall.Signal // for others once gone is closed
	go func() {
		defer close(gone)
		select {
		case s := <-signals:
			by = s.(syscall.Signal)
			stop()
			notice()
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
	return soft, kill, func() syscall.Signal {
		close(done)
		<-gone
		stopNotify()
		if by == 0 && ctx.Err() != nil {
			by = syscall.SIGTERM
		}
		stop()
		end()
		return by
	}
}
