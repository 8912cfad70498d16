package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/plan"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// planOptions are the arguments and flags of plan.
type planOptions struct {
	*runOptions
	durations plan.Durations
	from      []string // results files that durations are drawn from
	seed      int      // 0: a new one
	as        string   // how the forecast is printed
	records   string   // file for the record of each job; empty: none
}

// forecastRun is the run of records of what may happen.
const forecastRun = "forecast"

func newPlanCmd(forecast func(*planOptions) error) *cobra.Command {
	o := &planOptions{runOptions: newRunOptions(), durations: plan.Durations{Assumed: time.Second}, as: "text"}
	c := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Say beforehand how a run will go",
		Long: `Run the jobs of the files on a simulated clock, by the very same decisions as
run, and say when the run would end, what would be deferred and why, and which
limit makes it as long as it is. No call is made: all are assumed to succeed
at the first attempt, and to take as long as --assume or --from says.

The exit code is 0 whatever the forecast is; json is for programs that judge it.`,
		Example: `  agentlimit plan jobs.yaml --assume 250ms
  agentlimit plan jobs.yaml --assume 250ms --assume 'api.example.com=2s'
  agentlimit plan jobs.yaml --from jobs.results.jsonl --deadline 15m
  agentlimit plan jobs.yaml --format json | jq .finish_s`,
		RunE: func(*cobra.Command, []string) error { return forecast(o) },
	}
	o.onFiles(c)
	f := c.Flags()
	f.Var(assumeFlag(&o.durations), "assume", "how long a call takes (default 1s), or with HOST=DURATION, calls to hosts that match; may be repeated, the last wins")
	f.StringArrayVar(&o.from, "from", nil, "draw from how long calls took in the results `FILE`: those to the host, else of the kind, else all; may be repeated")
	f.Var(countFlag(&o.seed, 1, 1<<53), "seed", "for the same draw again (default a new one, which is said)")
	f.Var(wordFlag(&o.as, "text", "json", "html"), "format", "text, json or html: how the forecast is printed; html is the page of report")
	f.StringVar(&o.records, "records", "", "write a record of each job to `FILE`")
	o.addScopeFlags(f)
	o.addFlags(f, "input-format")
	return c
}

// assumeFlag reads DURATION or HOST=DURATION and may be given again and again.
func assumeFlag(to *plan.Durations) *value {
	return &value{kind: "[HOST=]DURATION", read: func(s string) error {
		host, text, found := strings.Cut(s, "=")
		if !found {
			text = s
		}
		d, err := limits.ParseDuration(text)
		if err != nil {
			return err
		}
		if !found {
			to.Assumed = d
			return nil
		}
		if _, err := path.Match(host, ""); err != nil {
			return fmt.Errorf("the pattern %q: %w", host, err)
		}
		to.Hosts = append(to.Hosts, plan.HostDuration{Hosts: host, Takes: d})
		return nil
	}}
}

// plan makes a forecast and prints it.
func (p *program) plan(o *planOptions) error {
	if err := p.measure(o); err != nil {
		return err
	}
	spec, err := p.load(&o.loadOptions)
	if err != nil {
		return err
	}
	defer spec.Close()
	var total int64
	o.Source, total = o.chosen(spec)
	o.Global, o.Limits, o.Run = p.globalCap(o.Global, spec), spec.Limits.For, forecastRun
	seen := &watch{Sink: sink(nowhere), hide: call.HideURLs(nil)}
	o.Records = seen
	closeRecords, err := o.openForecast(seen)
	if err != nil {
		return err
	}
	began := limits.TimeOf(time.Now())
	if o.as == "html" {
		return p.forecastPage(o, seen, began, closeRecords)
	}
	f, err := plan.Make(o.Config, began, o.durations.Of)
	if err = closeRecords(err); err != nil {
		return broken(err)
	}
	if o.as == "json" {
		return writeJSON(p.data(), o.inNumbers(f, began))
	}
	return p.print(o.describe(f, began, total, seen.troubles))
}

// forecastPage prints the page that report would make of the records.
func (p *program) forecastPage(o *planOptions, seen *watch, began limits.Time, closeRecords func(error) error) error {
	records := func(yield func(results.Record, error) bool) {
		seen.each = func(r *results.Record) { yield(*r, nil) }
		if _, err := plan.Make(o.Config, began, o.durations.Of); err != nil {
			yield(results.Record{}, err)
		}
	}
	r, err := report.New(records, report.Options{Title: titleOf(o.Files), Forecast: true, Limits: capped(o.Global, o.Limits)})
	if err = closeRecords(err); err != nil {
		return broken(err)
	}
	return r.HTML(p.data())
}

// measure learns how long calls took.
func (p *program) measure(o *planOptions) error {
	if slices.Contains(o.from, stdin) && slices.Contains(o.Files, stdin) {
		return errors.New("standard input cannot be the jobs and --from")
	}
	o.durations.Seed = uint64(cmp.Or(o.seed, 1+rand.IntN(1e9)))
	for _, name := range o.from {
		if err := o.durations.Measure(p.recordsOf(name)); err != nil {
			return fmt.Errorf("--from %q: %w", name, err)
		}
	}
	if len(o.from) > 0 && o.durations.Calls() == 0 {
		return &hinted{fmt.Errorf("--from %q: no call succeeded there", o.from[0]), "--assume says how long calls take"}
	}
	return nil
}

// openForecast has the records that seen sees written to the file that is named for
// them. What it returns ends the file, given what was met meanwhile, and returns that.
func (o *planOptions) openForecast(seen *watch) (func(error) error, error) {
	if o.records == "" {
		return func(err error) error { return err }, nil
	}
	file, err := (*whole)(nil), errors.New("the forecast goes there")
	if o.records != stdout {
		file, err = create(o.records, append(o.inputs(), o.from...)...)
	}
	if err != nil {
		return nil, &hinted{fmt.Errorf("--records %q: %w", o.records, err), "name a file that is nothing else"}
	}
	seen.Sink = results.NewWriter(file)
	return file.close, nil
}
