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

// run makes one attempt of a command.
func (c *Client) run(ctx context.Context, t *attempt) error {
	save, err := newSaving(t.Job.Output.Save)
	if err != nil {
		return err
	}
	defer save.discard()
	stdout, stderr := &capture{keep: t.keep(), save: save}, &capture{keep: t.keep()}
	p, err := c.start(t.Attempt, stdout, stderr)
	if err != nil {
		return err
	}
	ended := p.wait(ctx, c.grace, t.hurry)
	if p.cmd.ProcessState == nil {
		t.out.Sent = true
		return fail(Lost, "lost", "the system has lost the command")
	}
	inline := t.Job.Output.Inline
	t.out.Exec = execRecord(p.cmd.ProcessState, stdout.show(t.redactor, inline), stderr.show(t.redactor, inline))
	t.out.Exec.StdoutBytes, t.out.Exec.StderrBytes = stdout.total, stderr.total
	if ended {
		t.out.Sent = true
		return context.Cause(ctx)
	}
	return t.judgeExec(stdout)
}

// judgeExec says whether a command that ended by itself did what the job expects.
func (t *attempt) judgeExec(stdout *capture) error {
	switch x := t.out.Exec; {
	case x.Signal != "":
		return fail(Answered, "signal", "ended by signal %s", x.Signal)
	case !slices.Contains(t.Job.Expect.ExitCodes, x.ExitCode):
		return fail(Answered, "exit", "exit code %d", x.ExitCode)
	case !t.matches(stdout):
		return fail(Answered, "body", "standard output does not match %q", t.Job.Expect.Body)
	}
	saved, err := stdout.save.commit()
	t.out.Exec.Saved = saved
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
	case errors.Is(err, syscall.EBADF): // a handle's number would be beyond the limit
		return shortage(syscall.EMFILE)
	case isShortage(err):
		return shortage(err)
	case errors.Is(err, syscall.E2BIG):
		err = fmt.Errorf("arguments and environment are beyond the system's limit (see getconf ARG_MAX): %w", err)
	}
	return fail(Broken, "spawn", "start command: %w", err)
}
