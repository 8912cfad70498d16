package cmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/report"
)

// shownHosts is how many hosts the table tells the times of, the most used ones.
const shownHosts = 10

// reportOptions are the arguments and flags of report.
type reportOptions struct {
	recordOptions
	format string
	output string // empty: standard output
}

func newReportCmd(run func(*reportOptions) error) *cobra.Command {
	o := &reportOptions{format: "table"}
	c := &cobra.Command{
		Use:   "report RESULTS...",
		Short: "Say what happened, from results files",
		Long: `Say what happened, from results files (- is standard input): as a table, as
JSON, CSV (a row for each attempt), Markdown for the summary of a CI job,
JUnit's XML, the output lines of an openai-batch, or as one page of HTML. Of a
job with several records the newest counts. The limits are known if the job
files are named, too.`,
		Example: `  agentlimit report jobs.results.jsonl
  agentlimit report out.jsonl --jobs jobs.yaml --format html -o report.html
  agentlimit report shard-*.jsonl --format markdown >>"$GITHUB_STEP_SUMMARY"`,
		RunE: func(*cobra.Command, []string) error { return run(o) },
	}
	o.onResults(c)
	f := c.Flags()
	f.Var(wordFlag(&o.format, "table", "json", "csv", "markdown", "junit", "html", jobspec.OpenAIBatch), "format", "table, json, csv, markdown, junit, html or openai-batch")
	f.StringVarP(&o.output, "output", "o", "", "the `FILE` to write, whole or not at all (default standard output)")
	return c
}

func (p *program) report(o *reportOptions) error {
	if o.format == jobspec.OpenAIBatch && slices.Contains(o.results, stdin) {
		return &hinted{errors.New("--format openai-batch reads results twice"), "name their file"}
	}
	about := report.Options{Title: titleOf(o.results)}
	if len(o.jobs.Files) > 0 {
		spec, err := p.load(&o.jobs)
		if err != nil {
			return err
		}
		spec.Close()
		about.Limits = o.limitOf(spec)
	}
	if o.output == "" || o.output == stdout {
		return o.write(p.data(), p, about)
	}
	file, err := create(o.output, append(o.jobs.inputs(), o.results...)...)
	if err != nil {
		return &hinted{fmt.Errorf("output %q: %w", o.output, err), "-o names another file"}
	}
	err = o.write(breaking{file, fmt.Sprintf("output %q", o.output)}, p, about)
	if closed := file.close(err); err == nil && closed != nil {
		return broken(fmt.Errorf("output %q: %w", o.output, closed))
	}
	return err
}

// write writes the report in its format.
func (o *reportOptions) write(to io.Writer, p *program, about report.Options) error {
	w := bufio.NewWriter(to)
	records := p.records(o.results, false)
	switch o.format {
	case "csv":
		return cmp.Or(report.CSV(w, records), w.Flush())
	case jobspec.OpenAIBatch:
		return cmp.Or(report.Batch(w, records, p.records(o.results, true)), w.Flush())
	}
	r, err := report.New(records, about)
	if err != nil {
		return err
	}
	write := map[string]func(io.Writer) error{"json": r.JSON, "markdown": r.Markdown, "junit": r.JUnit, "html": r.HTML}[o.format]
	if write == nil {
		write = func(w io.Writer) error { _, err := io.WriteString(w, reportTable(r)); return err }
	}
	return cmp.Or(write(w), w.Flush())
}

// breaking says of an error of its writer what was done, and that it is no fault of
// what was read.
type breaking struct {
	io.Writer
	doing string
}

// Write writes.
func (b breaking) Write(data []byte) (int, error) {
	n, err := b.Writer.Write(data)
	if err != nil {
		err = broken(fmt.Errorf("%s: %w", b.doing, pathless(err)))
	}
	return n, err
}

// titleOf names a report after the first results file.
func titleOf(files []string) string {
	base := filepath.Base(files[0])
	title := cmp.Or(strings.TrimSuffix(strings.TrimSuffix(base, ".jsonl"), ".results"), base)
	if files[0] == stdin {
		title = "standard input"
	}
	if more := len(files) - 1; more > 0 {
		title += fmt.Sprintf(" and %d more", more)
	}
	return title
}

// reportTable says what the end of a run says, and how long attempts took.
func reportTable(r *report.Report) string {
	sum := runner.Summary{Ended: r.Statuses, AllRead: true}
	for _, k := range r.Keys {
		if k.Key.Kind == limits.Global { // what a run does not show either
			continue
		}
		sum.Keys = append(sum.Keys, runner.KeyStats{Key: k.Key, Limit: k.Limit, Started: k.Started, Peak: k.Peak, Held: k.Held, Spent: k.Spent, Waited: k.Waited})
	}
	if r.Jobs == 0 {
		return "no records\n"
	}
	text := summarize(sum, -1, r.Troubles, time.Duration(r.Took*1e6))
	return strings.TrimPrefix(text, "agentlimit: ") + hostTable(r.Hosts)
}

// hostTable has a line for each host: how long its attempts took.
func hostTable(hosts []*report.Latency) string {
	if len(hosts) == 0 {
		return ""
	}
	slices.SortStableFunc(hosts, func(a, b *report.Latency) int { return cmp.Compare(b.Attempts, a.Attempts) })
	return aligned(func(w io.Writer) {
		fmt.Fprintln(w, "  attempts on\t\thalf took\t90%\t99%\tlongest")
		for _, l := range hosts[:min(len(hosts), shownHosts)] {
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\t%s\n", cut(printable(cmp.Or(l.Host, "no host")), keyWidth), l.Attempts, briefMS(l.P50), briefMS(l.P90), briefMS(l.P99), briefMS(l.Max))
		}
		if more := len(hosts) - shownHosts; more > 0 {
			fmt.Fprintf(w, "  and %s\n", many(int64(more), "more host"))
		}
	})
}
