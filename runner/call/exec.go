package call

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentlimit/runner/results"
)

const (
	// linger is how long after its end a command's output may still come from what
	// it left behind, such as a process substitution of its shell.
	linger = 100 * time.Millisecond
	// pipeMax is more than any pipe holds.
	pipeMax = 1 << 20
	// goneWithin is how long a killed group may take to disappear before the attempt
	// ends all the same: a process in the kernel's hands cannot be hurried.
	goneWithin = 50 * time.Millisecond
)

// run makes one attempt of a command.
func (c *Client) run(ctx context.Context, t *attempt, stdout *capture) error {
	stderr, ended := t.newCapture(nil, t.Stderr), false
	feedback := c.feedbackPath()
	cmd := c.command(ctx, t.Attempt, feedback)
	cmd.Cancel = func() error { ended = true; return t.end(cmd.Process, c.cfg.Grace) }
	out, errs, err := t.start(ctx, cmd, stdout, stderr)
	if err != nil {
		return cmp.Or(context.Cause(ctx), cannot("spawn", "start command", err))
	}
	cmd.Wait() // its error is in ProcessState
	late := time.Now().Add(linger)
	out.finish(late)
	errs.finish(late)
	if cmd.ProcessState == nil {
		t.out.Sent = true
		return fail(Lost, "lost", "the system has lost the command")
	}
	t.out.Exec = t.execRecord(cmd.ProcessState, stdout, stderr)
	t.hint(takeFeedback(feedback))
	if ended {
		t.out.Sent = true
		return context.Cause(ctx)
	}
	return t.judgeExec(stdout)
}

// judgeExec says whether a command that ended by itself did what the job expects.
func (t *attempt) judgeExec(stdout *capture) (err error) {
	switch x := t.out.Exec; {
	case x.Signal != "":
		return fail(Answered, "signal", "ended by signal %s", x.Signal)
	case !slices.Contains(t.Job.Expect.ExitCodes, x.ExitCode):
		return fail(Answered, "exit", "exit code %d", x.ExitCode)
	case !t.matches(stdout):
		return fail(Answered, "body", "standard output does not match %q", t.Job.Expect.Body)
	}
	t.out.Exec.Saved, err = stdout.commit(t.Job.Output.Save)
	return err
}

func (t *attempt) execRecord(state *os.ProcessState, stdout, stderr *capture) *results.Exec {
	x := &results.Exec{ExitCode: state.ExitCode(), Signal: signalName(state)}
	out, err := stdout.show(t.redactor, t.Job.Output.Inline), stderr.show(t.redactor, t.Job.Output.Inline)
	x.Stdout, x.StdoutEncoding, x.StdoutBytes = out.text, out.encoding, stdout.total
	x.StdoutTruncated, x.StdoutRedacted = out.truncated, out.redacted
	x.Stderr, x.StderrEncoding, x.StderrBytes = err.text, err.encoding, stderr.total
	x.StderrTruncated, x.StderrRedacted = err.truncated, err.redacted
	return x
}

// command returns what is to be started, in a session and process group of its
// own. A program without a slash is looked up in this process's PATH; one with a
// slash is relative to the command's folder.
func (c *Client) command(ctx context.Context, a Attempt, feedback string) *exec.Cmd {
	x := a.Job.Exec
	var cmd *exec.Cmd
	if x.Shell != "" {
		cmd = shell(ctx, x.Shell)
	} else {
		cmd = exec.CommandContext(ctx, x.Argv[0], x.Argv[1:]...)
	}
	cmd.Dir, cmd.Env = x.Dir, c.environment(a, feedback)
	cmd.WaitDelay = linger // for input that nobody reads
	isolate(cmd)
	return cmd
}

// environment returns a command's variables; of two with one name the later counts.
func (c *Client) environment(a Attempt, feedback string) []string {
	x := a.Job.Exec
	env := make([]string, 0, len(c.environ)+len(x.Env)+5)
	if x.InheritEnv {
		env = append(env, c.environ...)
	}
	for _, v := range x.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	env = append(env,
		"AGENTLIMIT_JOB_ID="+a.Job.ID,
		"AGENTLIMIT_JOB_ATTEMPT="+strconv.Itoa(a.Number),
		"AGENTLIMIT_JOB_KEYS="+strings.Join(slices.Concat(a.Keys, c.cfg.Held), " "))
	if c.cfg.Coordinator != "" {
		env = append(env, "AGENTLIMIT_JOB_COORDINATOR="+c.cfg.Coordinator)
	}
	if !a.Deadline.IsZero() {
		env = append(env, "AGENTLIMIT_JOB_DEADLINE="+a.Deadline.Format(time.RFC3339Nano))
	}
	if feedback != "" {
		env = append(env, "AGENTLIMIT_JOB_FEEDBACK="+feedback)
	}
	return env
}

// feedbackPath names a file of its own for each command, in which it may say
// when to come back; empty if there is no place for one. Nothing is made there but
// by the command.
func (c *Client) feedbackPath() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feedback == nil && c.commands == 0 {
		c.feedback, _ = NewTemp() // nil on error
	}
	if c.commands++; c.feedback == nil {
		return ""
	}
	return filepath.Join(c.feedback.Path, strconv.FormatInt(c.commands, 10))
}

// takeFeedback reads and removes what a command wrote for us, if it did.
func takeFeedback(path string) *Hint {
	const most = 4096
	f, _, err := openRegular(path)
	if err != nil {
		return nil
	}
	defer os.Remove(path)
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return readFeedback(text)
}

// start starts cmd. An input that is not given is empty.
func (t *attempt) start(ctx context.Context, cmd *exec.Cmd, stdout, stderr *capture) (out, errs *stream, err error) {
	x := t.Job.Exec
	if len(x.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(x.Stdin)
	}
	if x.StdinFile != "" {
		f, _, err := openRegular(x.StdinFile)
		if err != nil {
			return nil, nil, cannot("file", "read stdin file", err)
		}
		defer f.Close()
		cmd.Stdin = f
	}
	if out, err = newStream(stdout); err != nil {
		return nil, nil, err
	}
	defer out.w.Close() // the command has its own, or there is none
	if errs, err = newStream(stderr); err != nil {
		return nil, nil, err
	}
	defer errs.w.Close()
	cmd.Stdout, cmd.Stderr = out.w, errs.w
	done, err := passPermit(ctx, cmd, t.Attempt)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if err := t.sending(); err != nil {
		return nil, nil, err
	}
	return out, errs, cmd.Start()
}

// passPermit has the command inherit its permit, if it can. Done is to be called when
// the command was started, or could not be.
func passPermit(ctx context.Context, cmd *exec.Cmd, a Attempt) (done func(), err error) {
	if a.Permit == nil {
		return func() {}, nil
	}
	permit, err := a.Permit(ctx)
	if err != nil {
		return nil, cannot("spawn", "pass the permit on", err)
	}
	cmd.ExtraFiles = []*os.File{permit}
	return func() { permit.Close() }, nil
}

// end ends p's whole group: TERM, and KILL for what is left after the grace. What
// the leader leaves behind when it obeys has the rest of the grace as well.
func (t *attempt) end(p *os.Process, grace time.Duration) error {
	if t.hurry() || !signalGroup(p, syscall.SIGTERM) || !gone(p, grace, t.hurry) {
		signalGroup(p, syscall.SIGKILL)
		gone(p, goneWithin, func() bool { return false })
	}
	return nil
}

// gone waits until no process of p's group is left, and reports whether that came
// about in time. It looks again and again, since nobody tells it: the group's
// members are not our children.
func gone(p *os.Process, within time.Duration, hurry func() bool) bool {
	end := time.Now().Add(within)
	for pause := time.Millisecond; alive(p); pause = min(2*pause, 20*time.Millisecond) {
		if hurry() || time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// A stream is one output of a command, read through a pipe while it runs, so
// that no amount of it takes disk or memory.
type stream struct {
	*capture
	r, w *os.File      // our end and the command's
	done chan struct{} // closed when the stream has been read
}

// newStream starts to read into c what will be written to the stream's w.
func newStream(c *capture) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{c, r, w, make(chan struct{})}
	go s.read()
	return s, nil
}

// read reads to the end, or until finish sets a deadline that is over. Then it
// takes what the pipe still holds, which includes all that the command wrote
// itself, and closes the pipe.
func (s *stream) read() {
	defer close(s.done)
	defer s.r.Close()
	if err := s.readAll(s.r); errors.Is(err, os.ErrDeadlineExceeded) {
		s.r.SetReadDeadline(time.Now().Add(linger / 5)) // Read looks before it waits
		s.readAll(io.LimitReader(s.r, pipeMax))
	}
}

// finish is called when the command has ended, and returns when all is read. A
// process left in the background may hold the pipe open for ever, so from late on
// no more is waited for.
func (s *stream) finish(late time.Time) {
	select {
	case <-s.done:
	case <-time.After(time.Until(late)):
		if s.r.SetReadDeadline(time.Now()) != nil { // not on Unix
			s.r.Close()
			return
		}
		<-s.done
	}
}
