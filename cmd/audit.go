package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/audit"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

const (
	// pauseLag is how long after an answer its pause may take to reach all who admit.
	pauseLag = 100 * time.Millisecond

	shownBreaches = 10
)

// auditOptions are the arguments and flags of audit.
type auditOptions struct {
	recordOptions
	partial  bool
	repeated bool
	format   string
}

func newAuditCmd(run func(*auditOptions) error) *cobra.Command {
	o := &auditOptions{format: "table"}
	c := &cobra.Command{
		Use:   "audit RESULTS... --jobs FILE",
		Short: "Prove from results files that limits were kept",
		Long: `Prove from results files (- is standard input) that no cap and no bucket of
the job files was ever exceeded, that nothing started after its deadline or in
a pause, and that each job has its record, once; else name the moments at
which it was not so. Name together the files of all runs that shared limits.

Exit codes: 0 proved; 1 it was not so; 2 bad usage or file.`,
		Example: `  agentlimit audit jobs.results.jsonl --jobs jobs.yaml
  agentlimit audit shard-*.jsonl --jobs limits.yaml --jobs bulk.jsonl
  agentlimit audit --repeated 2026-*.jsonl --jobs orders.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(o.jobs.Files) == 0 {
				return &hinted{errors.New("no job file is named"), "--jobs jobs.yaml says which limits were to be kept"}
			}
			return run(o)
		},
	}
	o.onResults(c)
	o.jobs.addFormatFlags(c.Flags(), "input-format")
	c.Flags().BoolVar(&o.partial, "partial", false, "jobs may have no record: the run was stopped, or chose some")
	c.Flags().BoolVar(&o.repeated, "repeated", false, "all jobs were run again for each results file, such as one a day")
	c.Flags().Var(wordFlag(&o.format, "table", "json"), "format", "table or json")
	return c
}

func (p *program) audit(o *auditOptions) error {
	spec, err := p.load(&o.jobs)
	if err != nil {
		return err
	}
	defer spec.Close()
	known, err := p.jobsOf(spec)
	if err != nil {
		return err
	}
	want := audit.Spec{Limits: o.limitOf(spec), Terms: known.termsOf, PauseLag: pauseLag}
	if !o.partial {
		want.Jobs, want.Bad = slices.Values(known.ids), known.bad
	}
	found, err := p.check(o, want)
	if err != nil {
		return err
	}
	slices.SortStableFunc(found.Violations, func(a, b audit.Violation) int { return cmp.Compare(uint64(a.At.Limits())-1, uint64(b.At.Limits())-1) })
	text := verdict(&found)
	if o.format == "json" {
		text = found.JSON()
	}
	if err := p.print(text); err != nil || len(found.Violations) == 0 {
		return err
	}
	return &coded{errors.New("the records break what was promised: " + many(int64(len(found.Violations)), "time")), exitFailed}
}

// check audits the records. Its error is that of a file that is none of results.
func (p *program) check(o *auditOptions, want audit.Spec) (audit.Report, error) {
	var bad error
	read := func(files ...string) iter.Seq2[results.Record, error] {
		return func(yield func(results.Record, error) bool) {
			for r, err := range p.records(files, true) {
				if err != nil && !errors.Is(err, results.ErrTorn) {
					bad = err
					return
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
	found := audit.CheckEach(func(yield func(string, iter.Seq2[results.Record, error]) bool) {
		if !o.repeated {
			yield("", read(o.results...))
			return
		}
		for _, name := range o.results {
			if !yield(name, read(name)) || bad != nil {
				return
			}
		}
	}, want)
	return found, bad
}

// knownJobs is what job files say of jobs.
type knownJobs struct {
	ids   []string // in their order
	bad   []string // places of bad lines
	terms map[string]knownTerms
	seed  maphash.Seed
}

type knownTerms struct {
	hash uint64
	*audit.Terms
}

// termsOf is that of [audit.Spec].
func (k *knownJobs) termsOf(id, hash string) *audit.Terms {
	if t := k.terms[id]; t.Terms != nil && t.hash == maphash.String(k.seed, hash) {
		return t.Terms
	}
	return nil
}

// jobsOf returns what is known of all jobs, and tells of bad lines.
func (p *program) jobsOf(spec *jobspec.Spec) (*knownJobs, error) {
	k := &knownJobs{terms: make(map[string]knownTerms), seed: maphash.MakeSeed()}
	alike := make(map[string]*audit.Terms) // most jobs have the terms of others
	for {
		j, err := spec.Source.Next()
		invalid, isInvalid := errors.AsType[*jobspec.Invalid](err)
		switch {
		case err == io.EOF:
			return k, nil
		case isInvalid:
			if k.bad = append(k.bad, invalid.Pos.String()); len(k.bad) <= shownInvalid {
				p.voice.note(slog.LevelWarn, invalid.Error())
			}
			continue
		case err != nil:
			return nil, err
		}
		j.Done()
		terms := &audit.Terms{Needs: j.Needs(nil, &spec.Limits), Deadline: j.Deadline.Set}
		shape := fmt.Sprint(*terms)
		if alike[shape] == nil {
			alike[shape] = terms
		}
		k.ids = append(k.ids, j.ID)
		k.terms[j.ID] = knownTerms{maphash.String(k.seed, j.Hash), alike[shape]}
	}
}

// verdict tells the first breaches in the order of time, or that there is none, and
// how near each key came to its limits.
func verdict(found *audit.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: ", many(int64(found.Records), "record"), many(int64(found.Attempts), "attempt"))
	if len(found.Violations) == 0 {
		b.WriteString("all limits were kept, nothing was late, lost or doubled\n")
	} else {
		b.WriteString("NOT as promised\n")
	}
	for _, v := range found.Violations[:min(len(found.Violations), shownBreaches)] {
		at := ""
		if !v.At.IsZero() {
			at = v.At.Format(time.RFC3339Nano) + " "
		}
		fmt.Fprintf(&b, "  %s%s: %s\n", at, v.Kind, printable(v.Message))
	}
	if more := len(found.Violations) - shownBreaches; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String() + proofTable(found.Keys)
}

// proofTable has a line for each key: its peak, and where its bucket had least left.
func proofTable(keys []audit.KeyReport) string {
	if len(keys) == 0 {
		return ""
	}
	return aligned(func(w io.Writer) {
		fmt.Fprintln(w, "  key\tstarts\tpeak\trate\ttightest use of the bucket")
		for _, k := range keys {
			name, tightest := printable(k.Key.String()), ""
			if k.Key.Kind == limits.Global {
				name = "run " + printable(k.Run)
			}
			if t := k.Tightest; t != nil {
				tightest = fmt.Sprintf("%d of %d within %s from %s", t.Spent, t.Allowed, brief(t.To.Sub(t.From.Time)), t.From.Format(time.RFC3339Nano))
			}
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\n", cut(name, keyWidth), k.Started, report.OfCap(k.Peak, k.Concurrency), cmp.Or(k.Rate, "-"), tightest)
		}
	})
}
