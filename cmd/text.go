package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// brief spells a duration with some three digits: 42ms, 1.5s, 2m, 1h30m.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		d = d.Round(time.Microsecond)
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	return exact(d)
}

// briefMS spells milliseconds so.
func briefMS(ms float64) string { return brief(time.Duration(ms * 1e6)) }

// exact spells a duration as it is, without zeros at its end.
func exact(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// many spells a number of things: "1 job", "2 jobs".
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// aligned returns lines with their cells, which end in tabs, below one another, and
// without blanks at the ends.
func aligned(lines func(io.Writer)) string {
	var table, b strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	lines(w)
	w.Flush()
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(&b, strings.TrimRight(line, " \n"))
	}
	return b.String()
}

// writeJSON writes one object for people and programs.
func writeJSON(w io.Writer, v any) error {
	lines := json.NewEncoder(w)
	lines.SetIndent("", "  ")
	return lines.Encode(v)
}

// printable returns s without anything that a terminal would obey: names and
// answers come from elsewhere.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// cut returns s in at most width columns of a terminal, its end given up for "…"
// if need be. All that may be wide counts as wide: from Hangul on, with the
// scripts of East Asia and the emoji.
func cut(s string, width int) string {
	used, room := 0, 0 // room: how many bytes leave a column for "…"
	for i, r := range s {
		if used < width {
			room = i
		}
		used++
		if r >= 0x1100 && r != '…' && r != '█' {
			used++
		}
		if used > width {
			return s[:room] + "…"
		}
	}
	return s
}
