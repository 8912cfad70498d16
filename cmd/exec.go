package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// execOptions are the arguments and flags of exec.
type execOptions struct {
	*runOptions
	callOptions
	command []string
}

func newExecCmd(run func(context.Context, *execOptions) error) *cobra.Command {
	o := &execOptions{runOptions: newRunOptions()}
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run one command under shared limits",
		Long: `Wait until the limits that processes share at a coordinator allow it, then run
the command, with the standard input, output and error of its own, and give
its permits back when it ends.

Exit codes: that of the command, 128+N if signal N ended it; 126 it cannot be
run; 127 it is not found; 75 it could not start in time; 125 agentlimit
failed.`,
		Example: `  agentlimit exec --coordinator folder --host nas --limit host/nas=2 -- sync.sh
  agentlimit exec --account mail --limit account/mail=1 --deadline 4m -- ./send`,
		RunE: func(c *cobra.Command, args []string) error {
			o.command = args
			if err := o.describe(); err != nil {
				return &coded{err, exitOwn}
			}
			return run(c.Context(), o)
		},
	}
	f := c.Flags()
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &coded{flagError(c, err), exitOwn} })
	f.SetInterspersed(false) // what follows the command is the command's
	o.addCoordinatorFlag(f)
	o.callOptions.addFlags(f)
	f.Var(durationFlag(&o.Deadline, 1), "deadline", "give up (exit code 75) if it could not start by then")
	f.Var(lostFlag(&o.Lost), "coordinator-lost", "while the coordinator cannot be reached: wait, or stop")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say what it waits for")
	return c
}

// describe turns the flags into a document with one job.
func (o *execOptions) describe() (err error) {
	switch {
	case len(o.command) == 0:
		return &hinted{errors.New("no command is named"), "agentlimit exec --host NAME --limit host/NAME=2 -- COMMAND"}
	case o.Options.Coordinator == "" || o.Options.Coordinator == "local":
		return &hinted{errors.New("no coordinator is shared: the limits would hold for this command alone"), "--coordinator folder shares them with the other processes of this machine"}
	}
	job := map[string]any{"id": "command", "exec": map[string]any{"argv": literal(o.command)}, "retry": map[string]any{"attempts": 1}}
	doc := map[string]any{"jobs": []any{job}}
	if err := o.callOptions.describe(doc, job); err != nil {
		return err
	}
	o.Document, err = json.Marshal(doc)
	return err
}

// literal returns what a job file makes a command of.
func literal(command []string) (args []string) {
	for _, arg := range command {
		args = append(args, strings.ReplaceAll(arg, "${", "$${"))
	}
	return args
}

// exec runs one command as soon as the limits allow.
func (p *program) exec(ctx context.Context, o *execOptions) error {
	p.voice.quiet = !o.verbose
	spec, err := p.load(&o.loadOptions)
	if err != nil {
		return &coded{err, exitOwn}
	}
	defer spec.Close()
	c, err := p.meet(ctx, o.runOptions)
	switch {
	case errors.As(err, new(*unmet)):
		return &coded{fmt.Errorf("not started: %w", err), exitDeferred}
	case err != nil:
		return &coded{err, exitOwn}
	}
	defer c.Close()
	soft, kill, by, release := p.takeSignals(ctx, func() {})
	defer release()
	command := &call.Foreground{
		Config: call.Config{Coordinator: o.meeting.id(), Held: o.meeting.parentKeys()},
		Stdin:  p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		// A terminal sends these to the command, too.
		Terminal: term.IsTerminal(handle(p.stdin)),
	}
	var record *results.Record // of its only job
	cfg := o.runOptions.Config
	cfg.Source, cfg.Limits, cfg.Coordinator, cfg.Caller = spec.Source, spec.Limits.For, c, command
	cfg.Stats, cfg.Global = runner.NewStats(spec.Limits.For), 1
	cfg.Records = sink(func(records ...*results.Record) error { record = records[0]; return nil })
	cfg.Kill, cfg.Grace, cfg.LostTold = kill, 1<<62, p.sayLost
	if o.verbose {
		tell, told := p.voice.pauses()
		defer told()
		cfg.Paused = tell
	}
	if err := runner.Run(soft, cfg); err != nil {
		return &coded{err, exitOwn}
	}
	switch {
	case command.Err != nil || command.State != nil:
		code, err := codeOf(command)
		return &coded{err, code}
	case record != nil && record.Deferred != nil:
		return &coded{fmt.Errorf("not started: %s", record.Deferred.Reason), exitDeferred}
	}
	return &coded{nil, exitSignal + int(by())}
}

// codeOf returns the exit code of a command as shells have it.
func codeOf(c *call.Foreground) (code int, err error) {
	switch {
	case errors.Is(c.Err, exec.ErrNotFound), errors.Is(c.Err, fs.ErrNotExist):
		return 127, c.Err
	case c.Err != nil:
		return 126, c.Err
	}
	if status, ok := c.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal()), nil
	}
	return c.State.ExitCode(), nil
}
