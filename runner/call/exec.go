package call

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// goneWithin is how long a killed group may take to disappear before the attempt
// ends all the same: a process in the kernel's hands cannot be hurried.
const goneWithin = 50 * time.Millisecond

// run makes one attempt of a command. hurry reports that the attempt must end at
// once, grace or not.
func (c *Client) run(ctx context.Context, hurry func() bool, a Attempt, red *redactor, out *Outcome) error {
	save, err := newSaving(a.Job.Output.Save)
	if err != nil {
		return err
	}
	defer save.discard()
	n := keep(a.Job, red)
	stdout, stderr := &capture{keep: n, save: save}, &capture{keep: n}
	p, err := c.start(a, stdout, stderr)
	if err != nil {
		return err
	}
	ended := p.wait(ctx, c.grace, hurry)
	out.Exec = execRecord(p.cmd.ProcessState, stdout.show(red, a.Job.Output.Inline),
		stderr.show(red, a.Job.Output.Inline))
	out.Exec.StdoutBytes, out.Exec.StderrBytes = stdout.total, stderr.total
	if ended {
		out.Sent = true
		return context.Cause(ctx)
	}
	return judgeExec(a.Job, stdout, out)
}

// judgeExec says whether a command that ended by itself did what the job expects.
func judgeExec(job *jobspec.Job, stdout *capture, out *Outcome) error {
	switch x := out.Exec; {
	case x.Signal != "":
		return fail(Answered, "signal", "ended by signal %s", x.Signal)
	case !slices.Contains(job.Expect.ExitCodes, x.ExitCode):
		return fail(Answered, "exit", "exit code %d", x.ExitCode)
	case !matches(job, stdout):
		return fail(Answered, "body", "standard output does not match %q", job.Expect.Body)
	}
	saved, err := stdout.save.commit()
	out.Exec.Saved = saved
	return err
}

func execRecord(state *os.ProcessState, stdout, stderr shown) *results.Exec {
	return &results.Exec{
		ExitCode: state.ExitCode(),
		Signal:   signalName(state),

		Stdout:          stdout.text,
		StdoutEncoding:  stdout.encoding,
		StdoutTruncated: stdout.truncated,
		StdoutRedacted:  stdout.redacted,

		Stderr:          stderr.text,
		StderrEncoding:  stderr.encoding,
		StderrTruncated: stderr.truncated,
		StderrRedacted:  stderr.redacted,
	}
}

// A process is a command under way, in a session and process group of its own.
type process struct {
	cmd     *exec.Cmd
	streams []*stream
	stdin   *os.File // our end; nil: none
}

// start starts the attempt's command. On error nothing is left behind.
func (c *Client) start(a Attempt, stdout, stderr *capture) (_ *process, err error) {
	p := &process{cmd: command(a.Job.Exec)}
	p.cmd.Env = c.environment(a)
	isolate(p.cmd)
	var theirs []*os.File // the command's ends
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			p.close()
			err = startFailure(err)
		}
	}()
	for _, keep := range []*capture{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, w)
		p.streams = append(p.streams, &stream{capture: keep, r: r, done: make(chan struct{})})
	}
	p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1]
	stdin, err := p.openStdin(a.Job.Exec)
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		theirs = append(theirs, stdin)
		p.cmd.Stdin = stdin
	}
	if a.Sending != nil {
		if err := a.Sending(); err != nil {
			return nil, &failure{Broken, "unsent", err}
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for _, s := range p.streams {
		go s.read()
	}
	if p.stdin != nil {
		go p.feed(a.Job.Exec.Stdin)
	}
	return p, nil
}

// openStdin returns the command's end of its input, nil for an empty one.
func (p *process) openStdin(x *jobspec.Exec) (stdin *os.File, err error) {
	switch {
	case x.StdinFile != "":
		if stdin, err = os.Open(x.StdinFile); err != nil && !isShortage(err) {
			err = fail(Broken, "file", "read stdin file: %w", err)
		}
	case len(x.Stdin) > 0:
		stdin, p.stdin, err = os.Pipe()
	}
	return stdin, err
}

// feed writes the command's input. An early end of the command ends it too.
func (p *process) feed(text []byte) {
	p.stdin.Write(text)
	p.stdin.Close()
}

func (p *process) close() {
	for _, s := range p.streams {
		s.r.Close()
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// wait returns when the command has ended and what it wrote has been read. The
// result says whether ctx ended it.
func (p *process) wait(ctx context.Context, grace time.Duration, hurry func() bool) bool {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		p.end(grace, hurry)
	})
	p.cmd.Wait() // its error is in ProcessState
	ended := !stop()
	if ended {
		<-done
	}
	for _, s := range p.streams {
		s.finish(ended)
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
	return ended
}

// end ends the whole group: TERM, and KILL for what is left after the grace. What
// the leader leaves behind when it obeys has the rest of the grace as well.
func (p *process) end(grace time.Duration, hurry func() bool) {
	if !hurry() && terminate(p.cmd.Process) && p.gone(grace, hurry) {
		return
	}
	kill(p.cmd.Process)
	p.gone(goneWithin, func() bool { return false })
}

// gone waits until no process of the group is left, and reports whether that came
// about in time. It looks again and again, since nobody tells it: the group's
// members are not our children.
func (p *process) gone(within time.Duration, hurry func() bool) bool {
	end := time.Now().Add(within)
	for pause := time.Millisecond; alive(p.cmd.Process); pause = min(2*pause, 20*time.Millisecond) {
		if hurry() || time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// command returns x ready to start. A program without a slash is looked up in
// this process's PATH; one with a slash is relative to the command's folder.
func command(x *jobspec.Exec) *exec.Cmd {
	var cmd *exec.Cmd
	if x.Shell != "" {
		cmd = shell(x.Shell)
	} else {
		cmd = exec.Command(x.Argv[0], x.Argv[1:]...)
	}
	cmd.Dir = x.Dir
	return cmd
}

// environment returns a command's variables; of two with one name the later counts.
func (c *Client) environment(a Attempt) []string {
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
		"AGENTLIMIT_JOB_KEYS="+strings.Join(a.Keys, " "))
	if !a.Deadline.IsZero() {
		env = append(env, "AGENTLIMIT_JOB_DEADLINE="+a.Deadline.Format(time.RFC3339Nano))
	}
	return env
}

// startFailure says what it means that a command did not start.
func startFailure(err error) error {
	switch {
	case errors.As(err, new(*failure)):
		return err
	case isShortage(err):
		return shortage(err)
	case errors.Is(err, syscall.E2BIG):
		err = fmt.Errorf("arguments and environment are beyond the system's limit (see getconf ARG_MAX): %w", err)
	}
	return fail(Broken, "spawn", "start command: %w", err)
}
