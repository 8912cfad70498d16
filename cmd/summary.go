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
	for _, t := range troubles[:min(len(troubles), shownTroubles)] {
		fmt.Fprintln(&b, cut("  "+t.String(), 2*lineWidth))
	}
	if more := len(troubles) - shownTroubles; more > 0 {
		fmt.Fprintf(&b, "  and %d more kinds of trouble: see the results\n", more)
	}
	if len(sum.Keys) > 0 {
		for line := range strings.Lines(keyTable(sum.Keys, took)) {
			fmt.Fprintln(&b, strings.TrimRight(cut(strings.TrimSuffix(line, "\n"), lineWidth), " "))
		}
	}
	return b.String()
}

// tally counts the jobs that ended in some ways, such as "3 succeeded".
func tally(sum runner.Summary, ways []results.Status) (parts []string) {
	for _, s := range ways {
		if n := sum.Ended[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return parts
}

// counted is how many jobs ended in which way, such as "3 succeeded, 1 failed". A
// total of -1 is unknown.
func counted(sum runner.Summary, total int64) string {
	parts := tally(sum, statuses)
	if n := unstarted(sum, total); n > 0 {
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

// unstarted returns how many jobs a run leaves: one that was stopped may have some
// that it never read.
func unstarted(sum runner.Summary, total int64) int64 {
	return max(sum.Unstarted, total-ended(sum))
}

// keyTable has a line for each key that was used, the most used of each kind.
func keyTable(keys []runner.KeyStats, took time.Duration) string {
	slices.SortStableFunc(keys, func(a, b runner.KeyStats) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(b.Started, a.Started))
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  key\tstarts\tpeak\trate\tjobs waited for")
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
	w.Flush()
	return table.String()
}

func keyRow(k runner.KeyStats, took time.Duration) string {
	rate := "-"
	if took >= time.Second { // below it says little
		rate = fmt.Sprintf("%.3g/s", float64(k.Started)/took.Seconds())
	}
	if k.Limit.Rate != (limits.Rate{}) {
		rate += " of " + k.Limit.Rate.String()
	}
	name := cut(printable(k.Key.String()), keyWidth)
	return fmt.Sprintf("  %s\t%d\t%s\t%s\t%s", name, k.Started, ofCap(k.Peak, k), rate, waited(k.Waited))
}

// waited tells what was waited for most.
func waited(w runner.Waits) string {
	var parts []string
	for range shownCauses {
		most := 0
		for cause, d := range w {
			if d > w[most] {
				most = cause
			}
		}
		if w[most] >= time.Millisecond {
			parts = append(parts, causeNames[most]+" "+brief(w[most]))
		}
		w[most] = 0
	}
	return strings.Join(parts, ", ")
}
