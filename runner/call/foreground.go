package call

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// killAfter is how long a command whose time is over has between TERM and KILL.
const killAfter = 3 * time.Second

// Foreground is a [Caller] for one attempt of one command, which has the given
// streams and whatever signals this process gets. Nothing is recorded of what it
// writes.
type Foreground struct {
	Config
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal says that a terminal sends its signals to the command itself.
	Terminal bool

	State *os.ProcessState // how the command ended; nil: it was not started
	Err   error            // why it could not be started
}

// Call runs the command to its end, whatever happens to ctx: a signal may stop what
// waits, but what runs decides itself. What it says of when to come back is a hint
// for others; it is not called again.
func (f *Foreground) Call(ctx context.Context, a Attempt) Outcome {
	c := New(f.Config)
	defer c.Close()
	c.environ = os.Environ()
	feedback := c.feedbackPath()
	f.Err = f.run(ctx, c, a, feedback)
	return Outcome{Kind: OK, Hint: takeFeedback(feedback)}
}

// Close does nothing.
func (f *Foreground) Close() {}

func (f *Foreground) run(ctx context.Context, c *Client, a Attempt, feedback string) error {
	argv := a.Job.Exec.Argv
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = f.Stdin, f.Stdout, f.Stderr, c.environment(a, feedback)
	done, err := passPermit(ctx, cmd, a)
	if err != nil {
		return err
	}
	defer done()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go f.passOn(signals, cmd.Process, a.Job.Timeout, ended)
	_ = cmd.Wait() // it is in the state
	close(ended)
	f.State = cmd.ProcessState
	return nil
}

// passOn passes signals on to a command, and ends it when its time is over.
func (f *Foreground) passOn(signals <-chan os.Signal, p *os.Process, timeout time.Duration, ended <-chan struct{}) {
	var over, kill <-chan time.Time // never
	if timeout > 0 {
		over = time.After(timeout)
	}
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM || !f.Terminal {
				_ = p.Signal(s) // it may be gone
			}
		case <-over:
			_ = p.Signal(syscall.SIGTERM)
			kill = time.After(killAfter)
		case <-kill:
			_ = p.Kill()
		case <-ended:
			return
		}
	}
}
