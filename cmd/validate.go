package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

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
		RunE: func(*cobra.Command, []string) error { return validate(o) },
	}
	o.onFiles(c)
	c.Flags().BoolVar(&o.show, "show", false, "show each job as it is understood")
	o.addFlags(c.Flags())
	return c
}

func (p *program) validate(o *validateOptions) error {
	spec, err := p.load(&o.loadOptions)
	if err != nil {
		return err
	}
	if o.show {
		if err := p.print(fmt.Sprintf("global: %d at once\n\n", cmp.Or(spec.Global, defaultGlobal))); err != nil {
			return err
		}
	}
	var jobs, bad int64
	keys := make(map[limits.Key]bool)
	for {
		j, err := spec.Source.Next()
		invalid, isInvalid := errors.AsType[*jobspec.Invalid](err)
		switch {
		case err == io.EOF && bad > 0:
			return fmt.Errorf("%s of standard input cannot be run", many(bad, "line"))
		case err == io.EOF:
			return p.print("ok: " + many(jobs, "job") + countKeys(keys) + "\n")
		case isInvalid:
			if bad++; bad <= shownInvalid {
				p.voice.fail(invalid)
			}
			continue
		case err != nil:
			return err
		}
		jobs++
		needs := j.Needs(nil, &spec.Limits)
		for _, need := range needs {
			keys[need.Key] = true
		}
		if o.show {
			if err := p.print(showJob(j, needs)); err != nil {
				return err
			}
		}
	}
}

// countKeys counts keys by kind, as the rest of a list.
func countKeys(keys map[limits.Key]bool) (list string) {
	var kinds [limits.Pair]int64
	for key := range keys {
		kinds[key.Kind]++
	}
	for kind, n := range kinds {
		if n > 0 {
			list += ", " + many(n, limits.Kind(kind).String())
		}
	}
	return list
}
