package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

const (
	lineWidth     = 80
	shownKeys     = 10 // of each kind
	shownTroubles = 5
	keyWidth      = 60
)

// summarize says how a run went: counts, what went wrong, and for each key how
// much it was used and what its attempts waited for.
func summarize(sum runner.Summary, total int64, troubles report.Troubles, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agentlimit: %s in %s\n", counted(sum, total), brief(took))
	writeDetails(&b, sum, troubles, took)
	return b.String()
}

// writeDetails says what went wrong, and has the table of keys.
func writeDetails(b *strings.Builder, sum runner.Summary, troubles report.Troubles, took time.Duration) {
	for _, t := range troubles[:min(len(troubles), shownTroubles)] {
		fmt.Fprintln(b, cut("  "+tellTrouble(t), 2*lineWidth))
	}
	if more := len(troubles) - shownTroubles; more > 0 {
		fmt.Fprintf(b, "  and %d more kinds of trouble: see the results\n", more)
	}
	if len(sum.Keys) > 0 {
		b.WriteString(keyTable(sum.Keys, took))
	}
}

// counted is how many jobs ended in which way, such as "3 succeeded, 1 failed". A
// total of -1 is unknown.
func counted(sum runner.Summary, total int64) string {
	parts := report.Tally(sum.Ended, results.Statuses[:])
	if n := sum.Unrecorded; n > 0 {
		parts = append(parts, fmt.Sprintf("%d whose results could not be written", n))
	}
	if n := unstarted(sum, total) - sum.Unrecorded; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", n))
	}
	text := strings.Join(parts, ", ")
	switch {
	case text == "" && sum.AllRead:
		return "nothing to do: no jobs"
	case text == "":
		return "no job ended"
	case sum.Earlier > 0:
		text += fmt.Sprintf(" (%d done before)", sum.Earlier)
	}
	return text
}

// unstarted returns how many jobs a run leaves without a record: one that was stopped
// may have some that it never read.
func unstarted(sum runner.Summary, total int64) int64 {
	return max(sum.Unstarted+sum.Unrecorded, total-ended(sum))
}

// keyTable has a line for each key that was used in a run that took so long, the most
// used of each kind.
func keyTable(keys []runner.KeyStats, took time.Duration) string {
	slices.SortStableFunc(keys, func(a, b runner.KeyStats) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(b.Started, a.Started))
	})
	return aligned(func(w io.Writer) {
		fmt.Fprintln(w, "  key\tstarts\tpeak\trate\tbusy\tjobs waited for")
		var count [limits.Pair]int64
		for _, k := range keys {
			if count[k.Key.Kind]++; count[k.Key.Kind] <= shownKeys {
				fmt.Fprintln(w, keyRow(k, took))
			}
		}
		for kind, n := range count {
			if more := n - shownKeys; more > 0 {
				fmt.Fprintf(w, "  and %s\n", many(more, "more "+limits.Kind(kind).String()))
			}
		}
	})
}

func keyRow(k runner.KeyStats, took time.Duration) string {
	rate := cmp.Or(results.BoundsOf(k.Limit).Rate, "-")
	name := cut(printable(k.Key.String()), keyWidth)
	return fmt.Sprintf("  %s\t%d\t%s\t%s\t%s\t%s", name, k.Started, report.OfCap(k.Peak, k.Limit.Concurrency), rate, busy(k, took), report.Waited(k.Waited, briefMS))
}

// busy spells the part of a run in which the key's limits were used up; "-" without
// limits.
func busy(k runner.KeyStats, took time.Duration) string {
	if k.Limit == (limits.Limit{}) {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share(k, took))
}

// share is the part of a run, from 0 to 1, that the key's calls need at least.
func share(k runner.KeyStats, took time.Duration) float64 {
	busy, _ := k.Busy()
	return busy.Seconds() / max(took, busy, 1).Seconds()
}

// account is a run in numbers, as --summary has it. The exit code follows from
// the statuses, which with what was not started make up all the jobs.
type account struct {
	V         int                      `json:"v"`
	Run       string                   `json:"run"`
	ExitCode  int                      `json:"exit_code"`
	Error     string                   `json:"error,omitempty"` // why the run could not begin or go on
	StartedAt results.Time             `json:"started_at"`
	EndedAt   results.Time             `json:"ended_at"`
	Jobs      int64                    `json:"jobs"`
	Earlier   int64                    `json:"earlier"` // of them, done by earlier runs
	Unstarted int64                    `json:"unstarted"`
	Attempts  int64                    `json:"attempts"`
	Peak      int64                    `json:"peak"` // attempts under way at once
	Statuses  map[results.Status]int64 `json:"statuses"`
	Troubles  report.Troubles          `json:"troubles"`
	Keys      []keyAccount             `json:"keys"`
}

// keyAccount is what one key was used for.
type keyAccount struct {
	Key limits.Key `json:"key"`
	results.Bounds
	Started int64              `json:"started"`
	Peak    int64              `json:"peak"`
	Busy    float64            `json:"busy"`      // part of the run, from 0 to 1, that its calls need at least
	Waited  map[string]float64 `json:"waited_ms"` // by cause
}

// account returns the numbers of a run that ends now with err.
func (s *session) account(sum runner.Summary, err error) *account {
	a := &account{
		V: 1, Run: s.Run, ExitCode: exitCode(err),
		StartedAt: results.Time{Time: s.began}, EndedAt: results.Time{Time: s.began.Add(time.Since(s.began))},
		Jobs: max(sum.Jobs, s.total), Earlier: sum.Earlier, Unstarted: unstarted(sum, s.total),
		Attempts: sum.Attempts, Peak: sum.PeakWay,
		Statuses: make(map[results.Status]int64),
		Troubles: append(report.Troubles{}, s.watch.troubles...), Keys: []keyAccount{},
	}
	if unsaid := unsaid(err); unsaid != nil {
		a.Error = unsaid.Error()
	}
	for _, s := range results.Statuses {
		a.Statuses[s] = sum.Ended[s]
	}
	for _, k := range sum.Keys {
		a.Keys = append(a.Keys, keyInNumbers(k, a.EndedAt.Sub(a.StartedAt.Time)))
	}
	return a
}

// keyInNumbers returns the numbers of one key in a run that took so long.
func keyInNumbers(k runner.KeyStats, took time.Duration) keyAccount {
	of := keyAccount{
		Key: k.Key, Bounds: results.BoundsOf(k.Limit),
		Started: k.Started, Peak: k.Peak, Busy: math.Round(1000*share(k, took)) / 1000, Waited: make(map[string]float64),
	}
	for cause, ms := range k.Waited.Parts() {
		of.Waited[strings.ReplaceAll(results.Causes[cause], " ", "_")] = math.Round(1000**ms) / 1000
	}
	return of
}

// openSummary opens the file of --summary.
func (o *runOptions) openSummary() (*whole, error) {
	file, err := create(o.summary)
	if err != nil {
		return nil, o.badSummary(err)
	}
	return file, nil
}

// checkSummary refuses a file of --summary that the run has already, once all its files
// are known.
func (o *runOptions) checkSummary() error {
	if o.summary == "" {
		return nil
	}
	out, _ := o.results() // what is wrong with it is said later
	err := taken(o.summary, append(o.inputs(), out))
	if o.summary == stdout {
		err = errors.New("want a file, such as /dev/stdout")
	}
	if err != nil {
		return o.badSummary(err)
	}
	return nil
}

func (o *runOptions) badSummary(err error) error {
	return &hinted{fmt.Errorf("summary file %q: %w", o.summary, err), "--summary names another file"}
}

// writeSummary fills the file of --summary at the end of a run with err, which it
// returns.
func (s *session) writeSummary(file *whole, err error) error {
	if bad := s.checkSummary(); bad != nil {
		file.close(bad) // nothing appears
		return err
	}
	if failed := file.close(writeJSON(file, s.account(s.Stats.Summary(), err))); failed != nil {
		return broken(errors.Join(unsaid(err), fmt.Errorf("summary file %q: %w", s.summary, failed)))
	}
	return err
}
