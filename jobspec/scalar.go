package jobspec

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentlimit/limits"
)

// str returns a text as typed; it must not be empty.
func (d *decoder) str(n *node) string {
	if n.kind == quoted && n.text == "" {
		d.fail(n, "an empty text: leave the key out")
		return ""
	}
	return d.strOrEmpty(n)
}

// strOrEmpty returns a text as typed. It is empty only if it was typed so, in
// quotes.
func (d *decoder) strOrEmpty(n *node) string {
	switch {
	case n.kind == null && n.text != "":
		d.fail(n, "%s is no text: put it in quotes", n.text)
	case n.kind == null || n.kind >= list:
		d.wrong(n, "want a text")
	case n.kind == boolean:
		d.fail(n, "%s: want a text: put it in quotes", n.text)
	case strings.Contains(n.text, "\x00"):
		d.fail(n, "want a text without NUL")
	default:
		if d.folder != "" && (n.text == "true" || n.text == "false") {
			d.retyped[n] = n.text
		}
		return n.text
	}
	return ""
}

// parse reads a text in a way of its own, whose errors say what is wanted.
func parse[T any](d *decoder, n *node, read func(string) (T, error)) (v T) {
	text := d.open(n)
	if text == "" {
		return v
	}
	v, err := read(text)
	if err != nil {
		d.wrong(n, err.Error())
	}
	return v
}

// maxCount bounds permits and tokens; a coordinator counts in doubles.
const maxCount = 1 << 52

// unquoted returns a text that must stand without quotes, unless it holds
// references, which JSON can write in quotes only.
func (d *decoder) unquoted(n *node) (text string, ok bool) {
	if n.kind < list && strings.Contains(n.text, "${") {
		if text = d.open(n); d.folder != "" {
			d.bare[n] = true
		}
		return text, text != ""
	}
	return n.text, plain <= n.kind && n.kind <= boolean
}

// whole returns a whole number from low to high.
func (d *decoder) whole(n *node, low, high int64) int64 {
	text, ok := d.unquoted(n)
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case !ok && text == "" && n.text != "": // reported
	case !ok || err != nil || strconv.FormatInt(v, 10) != text:
		d.wrong(n, "want a whole number")
	case low <= v && v <= high:
		return v
	case high == maxCount:
		d.wrong(n, fmt.Sprintf("want a whole number of at least %d", low))
	default:
		d.wrong(n, fmt.Sprintf("want a whole number from %d to %d", low, high))
	}
	return 0
}

// numbers reads a list of whole numbers.
func (d *decoder) numbers(n *node, low, high int64) []int {
	return each(d, n, func(item *node) int { return int(d.whole(item, low, high)) })
}

func (d *decoder) boolean(n *node) bool {
	text, ok := d.unquoted(n)
	if (!ok || text != "true" && text != "false") && (text != "" || n.text == "") {
		d.wrong(n, "want true or false")
	}
	return text == "true"
}

// parseMultiplier reads a number from 1 to 1000.
func parseMultiplier(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !jsonScalar.MatchString(s) || v < 1 || v > 1000 {
		err = errors.New("want a number from 1 to 1000")
	}
	return v, err
}

// jsonScalar matches what JSON has without quotes (RFC 8259, sections 3 and 6).
var jsonScalar = regexp.MustCompile(`^(null|true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)$`)

// parseDuration reads a duration above zero.
func parseDuration(s string) (time.Duration, error) {
	v, err := limits.ParseDuration(s)
	if err == nil && v <= 0 {
		err = errors.New("want a duration above zero")
	}
	return v, err
}

// durationOr reads a duration above zero, or a word for zero.
func durationOr(zero string) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		if s == zero {
			return 0, nil
		}
		return parseDuration(s)
	}
}

// parseWhen reads a duration from the run's start, or RFC 3339 with a zone; or
// none.
func parseWhen(s string) (When, error) {
	var at time.Time
	if s == "none" {
		return When{}, nil
	} else if at.UnmarshalText([]byte(s)) == nil {
		return When{At: at, Set: true}, nil
	}
	after, err := parseDuration(s)
	if err != nil {
		err = errors.New("want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z")
	}
	return When{After: after, Set: true}, err
}

// sizeUnits are the units that a size may have, in bytes.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// parseSize returns a number of bytes.
func parseSize(s string) (int64, error) {
	for _, unit := range sizeUnits {
		if count, found := strings.CutSuffix(s, unit.name); found {
			if v, err := strconv.ParseUint(count, 10, 32); err == nil {
				return int64(v) * unit.bytes, nil
			}
			break
		}
	}
	return 0, errors.New("want a size, such as 64KiB, 1MB or a number of bytes")
}

// maxInline bounds what is kept of a stream, as readers of records do.
const maxInline = 8 << 20

func parseInline(s string) (int64, error) {
	size, err := parseSize(s)
	if err == nil && size > maxInline {
		err = errors.New("want up to 8MiB: output.save takes more")
	}
	return size, err
}

// parseStatus reads a status, such as 404, or a class of them, such as 2xx.
func parseStatus(s string) (StatusRange, error) {
	class, isClass := strings.CutSuffix(s, "xx")
	v, err := strconv.Atoi(class)
	switch {
	case err == nil && isClass && 1 <= v && v <= 5:
		return StatusRange{v * 100, v*100 + 99}, nil
	case err == nil && !isClass && 100 <= v && v <= 599:
		return StatusRange{v, v}, nil
	}
	return StatusRange{}, errors.New("want a status from 100 to 599 or a class, such as 2xx")
}

// regexp compiles a regular expression; lines often share one.
func (d *decoder) regexp(n *node) *regexp.Regexp {
	return parse(d, n, func(s string) (*regexp.Regexp, error) {
		if d.pattern != nil && d.pattern.String() == s {
			return d.pattern, nil
		}
		compiled, err := regexp.Compile(s)
		if err != nil {
			return nil, errors.New("want a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		d.pattern = compiled
		return compiled, nil
	})
}

// name returns a name or an id, in which no secret may stand.
func (d *decoder) name(n *node) string { return parse(d, n, parseName) }

// parseName refuses what would make two names look like one.
func parseName(s string) (string, error) {
	if s != strings.TrimSpace(s) {
		return "", errors.New("want no white space at the ends")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("want no control characters")
	}
	if !utf8.ValidString(s) { // a line that ends in NUL may hold anything
		return "", errors.New("want UTF-8")
	}
	return s, nil
}
