package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentlimit/jobspec"
	"agentlimit/runner"
)

// defaultGlobal is how many attempts may be under way at once if nobody says.
const defaultGlobal = 16

// killAfter is how long a command has between TERM and KILL.
const killAfter = 3 * time.Second

// earlyGC is how much the heap may grow between collections, in percent, while there
// are many jobs, or may be.
const (
	earlyGC  = 33
	manyJobs = 100_000
)

// loadOptions say how job files are read.
type loadOptions struct {
	jobspec.Options          // what the command line says of them
	header          []string // of the requests of other programs' formats
	read            []string // all files that were read, once they are known
	meeting         meeting  // of a shared coordinator, once it is known
}

// addFlags adds the flags of job files; format is the name of the one that says how
// they are written.
func (o *loadOptions) addFlags(f *pflag.FlagSet, format string) {
	o.Vars = make(map[string]string)
	o.addFormatFlags(f, format)
	f.Var(variableFlag(o.Vars), "var", "what ${var:NAME} stands for; may be repeated")
	f.Var(shardFlag(&o.Shard), "shard", "only the jobs of one of several shards, such as 1/4, and its part of each limit that nobody shares")
	o.addCoordinatorFlag(f)
}

// addFormatFlags adds those that say how job files are written.
func (o *loadOptions) addFormatFlags(f *pflag.FlagSet, format string) {
	f.Var(wordFlag(&o.Format, "yaml", "json", "jsonl", jobspec.OpenAIBatch, jobspec.Vegeta), format, "yaml, json or jsonl: what standard input is, and what has no known ending; openai-batch or vegeta: what is no YAML")
	f.Var(&value{kind: "URL", read: func(s string) error { o.Requests.BaseURL = s; return nil }}, "base-url", "what the paths of an openai-batch are behind, such as https://api.example.com")
	f.StringArrayVar(&o.header, "header", nil, "a `HEADER` of each request of such a format, 'Name: value'; may be repeated; ${env:NAME} is a variable")
	f.Var(&value{kind: "POOL", read: func(s string) error { o.Requests.TokenPool = s; return nil }}, "token-pool", "the pool that the tokens of an openai-batch are from: a quarter of its bytes of text, and max_tokens")
	f.Var(&value{kind: "FIELD", read: func(s string) error { o.Requests.CostField = s; return nil }}, "cost-field", "the field of a line or its body that says the tokens")
}

// checkFormat refuses what does not go with the format, and reads the headers.
func (o *loadOptions) checkFormat() (err error) {
	batch := o.Format == jobspec.OpenAIBatch
	switch {
	case batch && o.Requests.BaseURL == "":
		return &hinted{errors.New("the format openai-batch is without --base-url"), "--base-url https://api.example.com stands in front of each url"}
	case !batch && (o.Requests.BaseURL != "" || o.Requests.TokenPool != "" || o.Requests.CostField != ""):
		return &hinted{errors.New("--base-url, --token-pool and --cost-field are for the format openai-batch"), "leave them out"}
	case o.Requests.CostField != "" && o.Requests.TokenPool == "":
		return &hinted{errors.New("--cost-field is without --token-pool"), "--token-pool names the pool that the tokens are taken from"}
	case len(o.header) > 0 && !batch && o.Format != jobspec.Vegeta:
		return &hinted{errors.New("--header is for the formats openai-batch and vegeta"), "jobs have headers of their own; defaults: {http: {headers: …}} are for all"}
	}
	if base, err := url.Parse(o.Requests.BaseURL); batch && (err != nil || base.Host == "" || strings.ContainsAny(o.Requests.BaseURL, "?#") || base.Scheme != "http" && base.Scheme != "https") {
		return errors.New("--base-url: want http:// or https://, a host, and perhaps the beginning of a path (what was given is not shown, it may hold a secret)")
	}
	o.Requests.Headers, err = readHeaders(o.header)
	return err
}

func (o *loadOptions) addCoordinatorFlag(f *pflag.FlagSet) {
	f.Var(coordinatorFlag(&o.Options.Coordinator), "coordinator", "who keeps the limits: local (this process), folder, folder:PATH or a redis:// URL (default as the file says)")
}

// onFiles makes c a command that is about job files: some must be named, and
// shells know what they are.
func (o *loadOptions) onFiles(c *cobra.Command) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &hinted{errors.New("no job file is named"), c.CommandPath() + " jobs.yaml, or - for standard input"}
		}
		o.Files = args
		return nil
	}
	c.ValidArgsFunction = cobra.FixedCompletions([]string{"yaml", "yml", "json", "jsonl", "ndjson"}, cobra.ShellCompDirectiveFilterFileExt)
}

// load reads and checks the job files, and says what works but may not be meant.
func (p *program) load(o *loadOptions) (*jobspec.Spec, error) {
	if err := o.checkFormat(); err != nil {
		return nil, err
	}
	// While files are checked nearly all of the memory is an index and ids, which hold
	// no pointers, so it costs little to collect garbage early. The ids go then; a long
	// index stays, and so do the ids of a pipe, which may be long.
	percent := debug.SetGCPercent(earlyGC)
	o.Stdin = p.stdin
	spec, err := jobspec.Load(o.Options)
	runtime.GC()
	if err != nil || 0 <= spec.Jobs && spec.Jobs < manyJobs {
		debug.SetGCPercent(percent)
	}
	if err != nil {
		return nil, err
	}
	if spec.Shared() {
		if o.meeting, err = parseMeeting(spec.Coordinator); err != nil {
			spec.Close()
			return nil, fmt.Errorf("coordinator: %w", err)
		}
	}
	o.read = spec.Files()
	for _, w := range spec.Warnings {
		p.voice.note(slog.LevelWarn, fmt.Sprint(w))
	}
	return spec, nil
}

// runOptions are the arguments and flags of run.
type runOptions struct {
	loadOptions
	runner.Config        // what the flags say of it; Global 0: as the files say
	output        string // empty: beside the working folder's other results
	resume        bool
	overwrite     bool
	only          []choice
	progress      string
	logFormat     string
	quiet         bool
	verbose       bool
	summary       string // empty: none
	deferredOut   string // empty: none
	deferredExit  int
	hideQuery     []string // query keys whose values are not recorded, besides the usual
	printed       *printer // of what the calls write; nil: nobody reads it
}

func newRunOptions() *runOptions {
	o := &runOptions{progress: "auto", logFormat: "text", deferredExit: exitDeferred}
	o.Grace, o.Queue, o.Lost = 8*time.Second, 10_000, runner.LostWait
	return o
}

func newRunCmd(run func(context.Context, *runOptions) error) *cobra.Command {
	o := newRunOptions()
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run the jobs of the files",
		Long: `Run the jobs of the files (YAML, JSON, JSON Lines; - is standard input), each as
soon as the limits allow, and append one record a job to the results file.

Exit codes: 0 all succeeded; 1 some failed; 2 bad usage or file, nothing ran;
3 could not go on; 4 results file in use; 75 none failed, some deferred;
129, 130, 143 stopped by a signal.`,
		Example: `  agentlimit run jobs.yaml
  agentlimit run jobs.yaml --resume --only 'id=photo-*'
  agentlimit run limits.yaml bulk.jsonl -o out.jsonl --deadline 15m
  generate | agentlimit run - -o - | jq .status`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return run(c.Context(), o)
		},
	}
	o.onFiles(c)
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "the results `FILE`; - is standard output (default NAME.results.jsonl, after the first file)")
	f.BoolVar(&o.resume, "resume", false, "go on with the results file: leave out the jobs that are done there; without one, start it")
	f.BoolVar(&o.RetryUnknown, "retry-unknown", false, "with --resume: repeat jobs of unknown fate, too")
	f.BoolVar(&o.overwrite, "overwrite", false, "start an existing results file anew")
	o.addScopeFlags(f)
	o.addEndFlags(f)
	o.addFlags(f, "format")
	f.Var(wordFlag(&o.progress, "auto", "bar", "plain", "none"), "progress", "auto, bar, plain or none")
	f.Var(wordFlag(&o.logFormat, "text", "json"), "log-format", "text, or json: standard error in objects, one a line")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing if the exit code is 0")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line when a job ends")
	f.StringVar(&o.deferredOut, "deferred-out", "", "write the deferred jobs to `FILE`, to run later")
	f.StringVar(&o.summary, "summary", "", "write how the run went to `FILE`, as JSON")
	f.Var(countFlag(&o.deferredExit, 0, 255), "deferred-exit", "the code of a run with deferred jobs, none failed")
	o.addHideFlag(f)
	return c
}

func (o *runOptions) addHideFlag(f *pflag.FlagSet) {
	f.Var(keysFlag(&o.hideQuery), "hide-query", "a query key whose values are not recorded, like key and token; may be repeated, or a list with commas")
}

const deadlineUsage = "defer what has not started by then, from now"

// addScopeFlags adds the flags that say which jobs there are, and how many at once.
func (o *runOptions) addScopeFlags(f *pflag.FlagSet) {
	f.Var(choiceFlag(&o.only), "only", "only the jobs that match: id=GLOB, host=GLOB or account=GLOB; of several, all must match")
	f.VarP(countFlag(&o.Global, 1, 1<<20), "concurrency", "j", "most calls under way at once (default as the file says, else 16)")
	f.Var(countFlag(&o.Queue, 1, 1<<30), "queue", "most jobs that wait in memory")
	f.Var(durationFlag(&o.Deadline, 1), "deadline", deadlineUsage)
}

// addEndFlags adds the flags that say when a run is stopped, and how.
func (o *runOptions) addEndFlags(f *pflag.FlagSet) {
	f.Var(lostFlag(&o.Lost), "coordinator-lost", "while a shared coordinator cannot be reached: wait, stop, or cancel (also what runs, when others may have its permits)")
	f.Var(durationFlag(&o.Grace, 0), "grace", "time to end in, after the first Ctrl-C")
	f.Var(maxFailuresFlag(&o.MaxFailures), "max-failures", "stop once so many jobs have failed, as a number or as a part of those that ended (5%, once 20 have)")
}

// check refuses options that do not go together.
func (o *runOptions) check() error {
	switch {
	case o.quiet && o.verbose:
		return &hinted{errors.New("-q and -v contradict each other"), "leave one of them out"}
	case o.resume && o.overwrite:
		return &hinted{errors.New("--resume and --overwrite contradict each other"), "leave one of them out"}
	case o.resume && o.output == stdout:
		return &hinted{errors.New("standard output cannot be gone on with"), "--resume needs a file, -o FILE"}
	case o.RetryUnknown && !o.resume:
		return &hinted{errors.New("--retry-unknown is without --resume"), "--resume --retry-unknown goes on with a results file"}
	}
	return nil
}
