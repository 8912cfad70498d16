package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// recordGC is how much the heap may grow between collections while records are read,
// in percent: most of it is what is known of them, which stays.
const recordGC = 25

// recordOptions say which records are read, and by which job files they are judged.
type recordOptions struct {
	results []string
	jobs    loadOptions
	global  int // 0: as the job files say
}

// onResults makes c a command that is about results files.
func (o *recordOptions) onResults(c *cobra.Command) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &hinted{errors.New("no results file is named"), c.CommandPath() + " jobs.results.jsonl, or - for standard input"}
		}
		for i, name := range args {
			if slices.Contains(args[:i], name) || results.SameFile(name, args[:i]...) != "" {
				return fmt.Errorf("results file %q: it is named twice", name)
			}
		}
		if o.results = args; slices.Contains(args, stdin) && slices.Contains(o.jobs.Files, stdin) {
			return errors.New("standard input cannot be the results and the jobs")
		}
		return nil
	}
	c.ValidArgsFunction = cobra.FixedCompletions([]string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt)
	f := c.Flags()
	o.jobs.Piped = true // the run may have had them from a pipe
	o.jobs.Vars = make(map[string]string)
	f.StringArrayVar(&o.jobs.Files, "jobs", nil, "the job `FILE` with the limits; may be repeated")
	f.Var(variableFlag(o.jobs.Vars), "var", "what ${var:NAME} stands for in it; may be repeated")
	f.VarP(countFlag(&o.global, 1, 1<<20), "concurrency", "j", "most calls at once that a run was told to have (default as the job files say, else 16)")
}

// limitOf returns what keys are allowed by the job files; for the zero key what one
// run is.
func (o *recordOptions) limitOf(spec *jobspec.Spec) func(limits.Key) limits.Limit {
	return capped(cmp.Or(o.global, spec.Global, defaultGlobal), spec.Limits.For)
}

// capped is limitOf with a limit for the zero key: a global cap.
func capped(global int, limitOf func(limits.Key) limits.Limit) func(limits.Key) limits.Limit {
	return func(key limits.Key) limits.Limit {
		if key == (limits.Key{}) {
			return limits.Limit{Concurrency: int64(global)}
		}
		return limitOf(key)
	}
}

// records returns the records of results files, one file behind the other. Unless
// all are wanted, bad lines that a later run read again are left out, and so is an end
// that was cut off, which is said.
func (p *program) records(files []string, all bool) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		defer debug.SetGCPercent(debug.SetGCPercent(recordGC))
		for _, name := range files {
			records := p.recordsOf(name)
			if !all {
				records = report.Standing(records)
			}
			for r, err := range records {
				switch {
				case errors.Is(err, results.ErrTorn) && !all:
					p.voice.note(slog.LevelWarn, fmt.Sprintf("results file %q: the last record is cut off in the middle: it is left out", name))
					continue
				case err != nil:
					err = fmt.Errorf("results file %q: %w", name, err)
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

func (p *program) recordsOf(name string) iter.Seq2[results.Record, error] {
	if name == stdin {
		return results.Read(jobspec.Unpack(p.stdin))
	}
	return func(yield func(results.Record, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(results.Record{}, pathless(err))
			return
		}
		defer f.Close()
		results.Read(jobspec.Unpack(f))(yield)
	}
}
