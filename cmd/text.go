package cmd

import (
	"fmt"
	"strconv"
	"strings"
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

// exact spells a duration as it is, without parts that are zero.
func exact(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// many spells a number of things: "1 job", "2 jobs".
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable returns s without anything that a terminal would obey: names and
// answers come from elsewhere.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) || r == utf8.RuneError {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// columns returns how many columns of a terminal s takes at most.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns counts all that may be wide as wide: from Hangul on, with the
// scripts of East Asia and the emoji.
func runeColumns(r rune) int {
	if r < 0x1100 || r == '…' || r == '█' {
		return 1
	}
	return 2
}

// cut returns s in at most width columns, its end given up for "…" if need be.
func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	used := 1
	for i, r := range s {
		if used += runeColumns(r); used > width {
			return s[:i] + "…"
		}
	}
	return s
}
