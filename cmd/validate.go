package cmd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

// shownInvalid is how many bad lines of a pipe are told of.
const shownInvalid = 10

// validateOptions are the arguments and flags of validate.
type validateOptions struct {
	loadOptions
	show bool
}

func newValidateCmd(p *program, validate func(*validateOptions) error) *cobra.Command {
	o := &validateOptions{}
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say all that is wrong with job files",
		Long: `Read job files as run does, and say all that is wrong with them (exit code 2).
With --show, say how each job is understood: the limits it falls under, what it
costs, its times and retries. Secrets are hidden.`,
		Example: `  agentlimit validate jobs.yaml
  agentlimit validate --show limits.yaml bulk.jsonl | less`,
		Args:              someFiles,
		ValidArgsFunction: completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = args
			return validate(o)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&o.show, "show", false, "show each job as it is understood")
	o.addFlags(c.Flags())
	return c
}

func (p *program) validate(o *validateOptions) error {
	spec, err := o.load(p.stdin)
	if err != nil {
		return err
	}
	for _, w := range spec.Warnings {
		p.voice.say(slog.LevelWarn, fmt.Sprint(w))
	}
	if o.show {
		if err := p.print(showGlobal(spec)); err != nil {
			return err
		}
	}
	seen, bad := newCensus(), int64(0)
	for {
		j, err := spec.Source.Next()
		if err == io.EOF {
			break
		}
		if invalid, found := errors.AsType[*jobspec.Invalid](err); found {
			if bad++; bad <= shownInvalid {
				p.voice.fail(invalid)
			}
			continue
		}
		if err != nil {
			return err
		}
		seen.add(j, &spec.Limits)
		if o.show {
			if err := p.print(showJob(j, &spec.Limits)); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%s of standard input cannot be run", many(bad, "line"))
	}
	return p.print(seen.String())
}

// census counts jobs and the keys they need.
type census struct {
	jobs  int64
	keys  map[limits.Key]bool
	kinds [limits.Pair]int64
	needs []limits.Need // memory to use again
}

func newCensus() *census { return &census{keys: make(map[limits.Key]bool)} }

func (c *census) add(j *jobspec.Job, table *limits.Table) {
	c.jobs++
	c.needs = j.Needs(c.needs[:0], table)
	for _, need := range c.needs {
		if !c.keys[need.Key] {
			c.keys[need.Key] = true
			c.kinds[need.Key.Kind]++
		}
	}
}

// String tells what was counted.
func (c *census) String() string {
	parts := []string{"ok: " + many(c.jobs, "job")}
	for kind, n := range c.kinds {
		if n > 0 {
			parts = append(parts, many(n, limits.Kind(kind).String()))
		}
	}
	return strings.Join(parts, ", ") + "\n"
}
