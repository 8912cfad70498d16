package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
	partial bool
	format  string
}

func newAuditCmd(p *program, run func(*auditOptions) error) *cobra.Command {
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
  agentlimit audit shard-*.jsonl --jobs limits.yaml --jobs bulk.jsonl`,
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
	c.Flags().Var(wordFlag(&o.format, "table", "json"), "format", "table or json")
	return c
}

func (p *program) audit(o *auditOptions) error {
	spec, err := p.load(&o.jobs)
	if err != nil {
		return err
	}
	defer spec.Close()
	want := audit.Spec{Limits: o.limitOf(spec), PauseLag: pauseLag}
	if !o.partial {
		ids, bad, err := p.idsOf(spec.Source)
		if err != nil {
			return err
		}
		want.Jobs, want.Bad = slices.Values(ids), bad
	}
	var bad error
	found := audit.Check(func(yield func(results.Record, error) bool) {
		for r, err := range p.records(&o.recordOptions, true) {
			if err != nil && !errors.Is(err, results.ErrTorn) {
				bad = err
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}, want)
	if bad != nil {
		return bad
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

// idsOf returns the ids of all jobs that are left, and the places of bad lines, of which
// it tells.
func (p *program) idsOf(source jobspec.Source) (ids, bad []string, err error) {
	for {
		j, err := source.Next()
		invalid, isInvalid := errors.AsType[*jobspec.Invalid](err)
		switch {
		case err == io.EOF:
			return ids, bad, nil
		case isInvalid:
			if bad = append(bad, invalid.Pos.String()); len(bad) <= shownInvalid {
				p.voice.note(slog.LevelWarn, invalid.Error())
			}
			continue
		case err != nil:
			return nil, nil, err
		}
		j.Done()
		ids = append(ids, j.ID)
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
