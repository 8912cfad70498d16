package cmd

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// notify begins to take the signals that stop a run: SIGHUP only if it was not
// ignored at the start, as under nohup. From now on a write to a broken standard
// output or standard error is an error, and not the end of the process. Commands
// are not touched by this: what is taken here has its default there, while an
// ignored signal would stay ignored.
func notify(stopping chan<- os.Signal) {
	signal.Notify(stopping, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(stopping, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nobody looks
}

// takeSignals ends the first context, on which nothing more starts, at the first
// signal or with ctx, and the second, on which all that is under way ends, at the
// second signal; a third has its default effect, whatever happens in here. It
// calls notice at the first. By returns the signal that stopped the run so far
// (SIGTERM for the end of ctx), and 0 if none did. The signals are taken until
// release is called, which must be, when all that the run has to write is written.
func (p *program) takeSignals(ctx context.Context, notice func()) (soft, kill context.Context, by func() syscall.Signal, release func()) {
	soft, stop := context.WithCancel(ctx)
	kill, end := context.WithCancel(context.WithoutCancel(ctx))
	signals, done := make(chan os.Signal, 4), make(chan struct{})
	if p.signals {
		notify(signals)
	}
	var first atomic.Int32
	var taker sync.WaitGroup
	taker.Go(func() {
		select {
		case s := <-signals:
			first.Store(int32(s.(syscall.Signal)))
			stop()
			notice()
			skipEcho(signals, done)
		case <-done:
			return
		}
		select {
		case <-signals:
			end()
			signal.Stop(signals)
		case <-done:
		}
	})
	by = func() syscall.Signal {
		if s := first.Load(); s != 0 || ctx.Err() == nil {
			return syscall.Signal(s)
		}
		return syscall.SIGTERM
	}
	return soft, kill, by, func() {
		close(done)
		taker.Wait()
		signal.Stop(signals)
		stop()
		end()
	}
}

// echo is how soon after the first signal another is the same one once more:
// timeout(1) signals its child and then its whole group.
const echo = 100 * time.Millisecond

// skipEcho takes what comes within that time.
func skipEcho(signals <-chan os.Signal, done <-chan struct{}) {
	for over := time.After(echo); ; {
		select {
		case <-signals:
		case <-over:
			return
		case <-done:
			return
		}
	}
}
