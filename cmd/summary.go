package cmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

const (
	lineWidth     = 80
	shownKeys     = 10 // of each kind
	shownTroubles = 5
	shownCauses   = 2
	keyWidth      = 28
)

// statuses in the order in which they are told.
var statuses = []results.Status{
	results.Succeeded, results.Failed, results.Unknown, results.Interrupted, results.Invalid, results.Deferred,
}

var causeNames = [...]string{
	schedule.Global:    "global",
	schedule.Host:      "host",
	schedule.Account:   "account",
	schedule.Pool:      "pool",
	schedule.Rate:      "rate",
	schedule.Pause:     "pause",
	schedule.Backoff:   "backoff",
	schedule.NotBefore: "not before",
}

// summarize says how a run went: counts, what went wrong, and for each key how
// much it was used and what its attempts waited for.
func summarize(sum runner.Summary, total int64, troubles []*trouble, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agentlimit: %s in %s\n", counted(sum, total), brief(took))
	for i, t := range troubles {
		if i == shownTroubles {
			fmt.Fprintf(&b, "  and %d more kinds of trouble: see the results\n", len(troubles)-i)
			break
		}
		fmt.Fprintln(&b, cut("  "+t.String(), 2*lineWidth))
	}
	keyTable(&b, sum.Keys, took)
	return b.String()
}

// counted is how many jobs ended in which way, such as "3 succeeded, 1 failed". A
// total of -1 is unknown.
func counted(sum runner.Summary, total int64) string {
	var parts []string
	for _, s := range statuses {
		if n := sum.Ended[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if n := unstarted(sum, total); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", n))
	}
	switch {
	case len(parts) > 0 && sum.Earlier > 0:
		return fmt.Sprintf("%s (%d done before)", strings.Join(parts, ", "), sum.Earlier)
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case sum.AllRead:
		return "nothing to do: no jobs"
	}
	return "no job ended"
}

// unstarted returns how many jobs a run leaves: one that was stopped may have some
// that it never read.
func unstarted(sum runner.Summary, total int64) int64 {
	return max(sum.Unstarted, total-ended(sum))
}

// String tells the kind, the job or how many, and the reason.
func (t *trouble) String() string {
	who := t.first
	switch {
	case t.key != "":
		who = t.key + ": " + many(t.jobs, "job")
	case t.jobs > 1:
		who = fmt.Sprintf("%d jobs, such as %s", t.jobs, t.first)
	}
	s := fmt.Sprintf("%s: %s", t.kind, who)
	if t.reason != "" {
		s += ": " + t.reason
	}
	if !t.retry.IsZero() {
		s += "; again from " + t.retry.Local().Format(time.RFC3339)
	}
	return printable(s)
}

// keyTable writes a line for each key that was used, the most used of each kind.
func keyTable(b *strings.Builder, keys []runner.KeyStats, took time.Duration) {
	if len(keys) == 0 {
		return
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  key\tstarts\tpeak\trate\tjobs waited for")
	for kind := limits.Host; kind <= limits.Pool; kind++ {
		kin := slices.DeleteFunc(slices.Clone(keys), func(k runner.KeyStats) bool { return k.Key.Kind != kind })
		slices.SortStableFunc(kin, func(a, b runner.KeyStats) int { return cmp.Compare(b.Started, a.Started) })
		for _, k := range kin[:min(len(kin), shownKeys)] {
			fmt.Fprintln(w, keyRow(k, took))
		}
		if more := len(kin) - shownKeys; more > 0 {
			fmt.Fprintf(w, "  and %s\n", many(int64(more), "more "+kind.String()))
		}
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(cut(strings.TrimSuffix(line, "\n"), lineWidth), " ") + "\n")
	}
}

func keyRow(k runner.KeyStats, took time.Duration) string {
	peak, rate := fmt.Sprint(k.Peak), "-"
	if most := k.Limit.Concurrency; most > 0 {
		peak = fmt.Sprintf("%d/%d", k.Peak, most)
	}
	if took >= time.Second { // below it says little
		rate = fmt.Sprintf("%.3g/s", float64(k.Started)/took.Seconds())
	}
	if k.Limit.Rate != (limits.Rate{}) {
		rate += " of " + k.Limit.Rate.String()
	}
	name := cut(printable(k.Key.String()), keyWidth)
	return fmt.Sprintf("  %s\t%d\t%s\t%s\t%s", name, k.Started, peak, rate, waited(k.Waited))
}

// waited tells what was waited for most.
func waited(w runner.Waits) string {
	var causes []int
	for cause, d := range w {
		if d >= time.Millisecond {
			causes = append(causes, cause)
		}
	}
	slices.SortStableFunc(causes, func(a, b int) int { return cmp.Compare(w[b], w[a]) })
	var parts []string
	for _, cause := range causes[:min(len(causes), shownCauses)] {
		parts = append(parts, causeNames[cause]+" "+brief(w[cause]))
	}
	return strings.Join(parts, ", ")
}
