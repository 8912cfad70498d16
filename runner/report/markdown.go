package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

const (
	toldKeys     = 10 // of each kind, the most used ones
	toldTroubles = 20
	toldHosts    = 20 // the first by name
	toldCauses   = 2
)

// Markdown writes what fits the summary of a CI job: counts, and tables of what
// went wrong, of keys and of hosts.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", escape(r.Title))
	if r.Forecast {
		b.WriteString("A forecast: nothing has run.\n\n")
	}
	fmt.Fprintf(&b, "**%s** %s\n", r.Counts(), r.when())
	table := func(title string, head ...string) {
		fmt.Fprintf(&b, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	}
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = escape(clip(cells[i], maxReason))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	if len(r.Troubles) > 0 {
		table("What went wrong", "jobs", "kind", "reason", "such as", "again from")
	}
	troubles := r.Troubles[:min(len(r.Troubles), toldTroubles)]
	for _, t := range troubles {
		row(fmt.Sprint(t.Jobs), t.Kind, strings.TrimPrefix(t.Key+": "+t.Why(), ": "), t.First, moment(t.RetryAt))
	}
	more(&b, r.untold(troubles), "jobs, for other reasons")
	keys, left := mostUsed(r.Keys, toldKeys)
	if len(keys) > 0 {
		table("Limits", "key", "starts", "peak", "rate", "tightest", "jobs waited for")
	}
	for _, k := range keys {
		row(k.Key.String(), fmt.Sprint(k.Started), OfCap(k.Peak, k.Concurrency), k.Rate, k.tightest(), Waited(k.Waited, took))
	}
	more(&b, int64(left), "keys, which were used less")
	if len(r.Hosts) > 0 {
		table("How long attempts took", "host", "attempts", "half", "90 %", "99 %", "longest")
	}
	for _, l := range r.Hosts[:min(len(r.Hosts), toldHosts)] {
		row(cmp.Or(l.Host, "no host"), fmt.Sprint(l.Attempts), took(l.P50), took(l.P90), took(l.P99), took(l.Max))
	}
	more(&b, int64(len(r.Hosts)-toldHosts), "hosts")
	_, err := io.WriteString(w, b.String())
	return err
}

// more says how many rows a table leaves out.
func more(w io.Writer, n int64, things string) {
	if n > 0 {
		fmt.Fprintf(w, "\nAnd %d more %s.\n", n, things)
	}
}

func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Counts says how many jobs there are and how they ended.
func (r *Report) Counts() string {
	parts := strings.Join(Tally(r.Statuses, results.Statuses[:]), ", ")
	return fmt.Sprintf("%s: %s.", many(r.Jobs, "job"), cmp.Or(parts, "nothing to tell"))
}

// Tally counts the jobs that ended in some of the ways, such as "3 succeeded".
func Tally(n map[results.Status]int64, ways []results.Status) (parts []string) {
	for _, s := range ways {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return parts
}

// when says how much was done in which time.
func (r *Report) when() string {
	if r.StartedAt.IsZero() {
		return ""
	}
	text := fmt.Sprintf("%s in %s, from %s to %s", many(r.Attempts, "attempt"), took(r.Took), moment(r.StartedAt), moment(r.EndedAt))
	if r.Runs > 1 {
		text += fmt.Sprintf(", in %d runs", r.Runs)
	}
	return text + "."
}

// mostUsed returns at most n keys of each kind, and how many it leaves out.
func mostUsed(all []*Key, n int) (keys []*Key, left int) {
	var count [limits.Pair + 1]int
	for _, k := range slices.SortedFunc(slices.Values(all), func(a, b *Key) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(b.Started, a.Started), a.Key.Compare(b.Key))
	}) {
		if count[k.Key.Kind]++; count[k.Key.Kind] <= n {
			keys = append(keys, k)
		}
	}
	return keys, len(all) - len(keys)
}

// OfCap spells a number of attempts: "3/4", or "3" without a cap.
func OfCap(n, most int64) string {
	if most > 0 {
		return fmt.Sprintf("%d/%d", n, most)
	}
	return fmt.Sprint(n)
}

// tightest spells where the bucket was nearest to its limit.
func (k *Key) tightest() string {
	w := k.Tightest
	if w == nil {
		return ""
	}
	within := "at once at"
	if d := w.To.Sub(w.From.Time); d > 0 {
		within = "within " + took(d.Seconds()*1e3) + " from"
	}
	return fmt.Sprintf("%d of %d tokens %s %s", w.Spent, w.Allowed, within, clock(w.From))
}

// Waited tells the two causes of which most was waited for, the longer wait first, as
// spell spells milliseconds; what is below one is left out.
func Waited(w results.Waits, spell func(ms float64) string) string {
	var told []string
	parts := w.Parts()
	for range toldCauses {
		most := 0
		for cause, ms := range parts {
			if *ms > *parts[most] {
				most = cause
			}
		}
		if *parts[most] >= 1 {
			told = append(told, results.Causes[most]+" "+spell(*parts[most]))
		}
		*parts[most] = 0 // w is a copy
	}
	return strings.Join(told, ", ")
}

// took spells milliseconds with some three digits, for pages.
func took(ms float64) string {
	whole := int(math.Round(ms / 1e3))
	switch {
	case ms < 1:
		return fmt.Sprintf("%.0f µs", ms*1e3)
	case ms < 999.5:
		return fmt.Sprintf("%.3g ms", ms)
	case ms < 59_950:
		return fmt.Sprintf("%.3g s", ms/1e3)
	case whole < 3600:
		return fmt.Sprintf("%d min %d s", whole/60, whole%60)
	}
	return fmt.Sprintf("%d h %d min", whole/3600, whole/60%60)
}

// moment and clock spell times in UTC, with the day and without; none is "".
func moment(t results.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func clock(t results.Time) string { return t.UTC().Format("15:04:05.000") }

// escape takes from a text all that Markdown or HTML would obey, web addresses too:
// it comes from elsewhere.
func escape(s string) string {
	var b strings.Builder
	last := ' '
	for _, r := range s {
		switch {
		case strings.ContainsRune("\\`*_[]<>#|~&$@", r), r == '/' && last == ':':
			b.WriteByte('\\')
		case unicode.IsControl(r):
			r = ' '
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}
