package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
)

// defaultGlobal is how many attempts may be under way at once if nobody says.
const defaultGlobal = 16

// killAfter is how long a command has between TERM and KILL.
const killAfter = 3 * time.Second

// loadOptions say how job files are read.
type loadOptions struct {
	files  []string
	format string
	vars   map[string]string
}

func (o *loadOptions) addFlags(f *pflag.FlagSet) {
	o.vars = make(map[string]string)
	f.Var(wordFlag(&o.format, "yaml", "json", "jsonl"), "format", "yaml, json or jsonl: what standard input is, and\nwhat has no known ending")
	f.Var(variables(o.vars), "var", "what ${var:NAME} stands for; may be repeated")
}

// completeFiles tells shells which files job files are.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json", "jsonl", "ndjson"}, cobra.ShellCompDirectiveFilterFileExt
}

// load reads and checks the job files.
func (o *loadOptions) load(stdin io.Reader) (*jobspec.Spec, error) {
	spec, err := jobspec.Load(jobspec.Options{Files: o.files, Format: o.format, Vars: o.vars, Stdin: stdin})
	if err != nil {
		return nil, err
	}
	if spec.Coordinator != "" && spec.Coordinator != "local" {
		return nil, errors.New("limits.coordinator: want local (the value is not shown, it may hold a secret)")
	}
	return spec, nil
}

// runOptions are the arguments and flags of run.
type runOptions struct {
	loadOptions
	output       string // empty: beside the working folder's other results
	overwrite    bool
	concurrency  int // 0: as the files say
	deadline     time.Duration
	grace        time.Duration
	queue        int
	progress     string
	quiet        bool
	verbose      bool
	deferredExit int
}

func newRunCmd(p *program, run func(context.Context, *runOptions) error) *cobra.Command {
	o := &runOptions{grace: 8 * time.Second, queue: 10_000, progress: "auto", deferredExit: exitDeferred}
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run the jobs of the files",
		Long: `Run the jobs of the files (YAML, JSON, JSON Lines; - is standard input), each as
soon as the limits allow, and append one record a job to the results file.

Exit codes: 0 all succeeded; 1 some failed; 2 bad usage or file, nothing ran;
3 could not go on; 4 results file in use; 75 none failed, some deferred;
129, 130, 143 stopped by a signal.`,
		Example: `  agentlimit run jobs.yaml
  agentlimit run limits.yaml bulk.jsonl -o out.jsonl --deadline 15m
  generate | agentlimit run - -o - | jq .status`,
		Args:              someFiles,
		ValidArgsFunction: completeFiles,
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			if o.quiet && o.verbose {
				return &hinted{errors.New("-q and -v contradict each other"), "leave one of them out"}
			}
			return run(c.Context(), o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "the results `FILE`; - is standard output\n(default NAME.results.jsonl, after the first file)")
	f.BoolVar(&o.overwrite, "overwrite", false, "start an existing results file anew")
	f.VarP(countFlag(&o.concurrency, 1, 1<<20), "concurrency", "j", "most calls under way at once\n(default as the file says, else 16)")
	f.Var(durationFlag(&o.deadline, 1), "deadline", "defer what has not started by then, from now")
	f.Var(durationFlag(&o.grace, 0), "grace", "time to end in, after the first Ctrl-C")
	f.Var(countFlag(&o.queue, 1, 1<<30), "queue", "most jobs that wait in memory")
	o.addFlags(f)
	f.Var(wordFlag(&o.progress, "auto", "bar", "plain", "none"), "progress", "auto, bar, plain or none")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing if the exit code is 0")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line when a job ends")
	f.Var(countFlag(&o.deferredExit, 0, 255), "deferred-exit", "the code of a run with deferred jobs, none failed")
	return c
}

// run checks everything, then runs the jobs.
func (p *program) run(ctx context.Context, o *runOptions) error {
	spec, err := o.load(p.stdin)
	if err != nil {
		return err
	}
	records, err := p.openResults(o)
	if err != nil {
		return err
	}
	global := p.global(o, spec)
	if !o.quiet {
		p.warn(spec, global)
	}
	coordinator := limits.NewLocal()
	defer coordinator.Close()
	client := call.New(call.Config{Concurrency: global, Grace: min(killAfter, max(1, o.grace))})
	defer client.Close()

	w := &watch{Sink: records}
	cfg := runner.Config{
		Run:         newRunName(),
		Source:      spec.Source,
		Limits:      &spec.Limits,
		Coordinator: coordinator,
		Caller:      client,
		Records:     w,
		Stats:       runner.NewStats(spec.Limits.For),
		Global:      global,
		Queue:       o.queue,
		Grace:       o.grace,
		Deadline:    o.deadline,
	}
	err = p.watchRun(ctx, o, cfg, w, spec.Jobs)
	if closed := records.Close(); err == nil && closed != nil {
		err = &broken{closed}
	}
	return err
}

// watchRun runs the jobs while it shows what goes on, takes signals, and says in
// the end how it went.
func (p *program) watchRun(ctx context.Context, o *runOptions, cfg runner.Config, w *watch, total int64) error {
	screen := newScreen(p.stderr)
	if o.verbose {
		w.each = func(line string) { fmt.Fprintln(screen, line) }
	}
	ends, release := p.takeSignals(ctx, func() {
		fmt.Fprintln(screen, stopNotice(cfg.Stats.Summary().UnderWay, o.grace))
	})
	cfg.Kill = ends.kill
	start := time.Now()
	hide := screen.show(p.progressMode(o), cfg.Stats, total)
	err := runner.Run(ends.soft, cfg)
	hide()
	u := &unfinished{Summary: cfg.Stats.Summary(), signal: release(), deferred: o.deferredExit}
	if err != nil {
		err = &broken{err}
	} else if u.code() != 0 {
		err = u
	}
	if err != nil || !o.quiet {
		io.WriteString(p.stderr, summarize(u.Summary, total, w.troubles, time.Since(start)))
	}
	return err
}

// global returns how many attempts may be under way at once: not more than this
// process has file handles for.
func (p *program) global(o *runOptions, spec *jobspec.Spec) int {
	asked := cmp.Or(o.concurrency, spec.Global, defaultGlobal)
	most := call.MaxConcurrency()
	if asked > most && !o.quiet {
		p.say("warning", "only %d calls at once instead of %d: the limit of open files (ulimit -n) allows no more", most, asked)
	}
	return min(asked, most)
}

// warn says what works, but may not do what is meant.
func (p *program) warn(spec *jobspec.Spec, global int) {
	for _, w := range spec.Warnings {
		p.say("warning", "%s", w)
	}
	if spec.Limits.Empty() {
		p.say("warning", "no limits are set: only the global cap of %d holds", global)
	}
}

// stopNotice says what the first signal does.
func stopNotice(underWay int64, grace time.Duration) string {
	if underWay == 0 {
		return "agentlimit: stopping"
	}
	return fmt.Sprintf("agentlimit: stopping: %d under way may end within %s; again to end them at once", underWay, brief(grace))
}

// newRunName returns a name that no other run has.
func newRunName() string {
	return time.Now().UTC().Format("20060102T150405Z-") + strings.ToLower(rand.Text()[:6])
}
