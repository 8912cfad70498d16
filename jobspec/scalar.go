package jobspec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"agentlimit/limits"
)

// items returns what a list holds.
func (d *decoder) items(n *node) []*node {
	if n.kind != list {
		d.wrong(n, "want a list")
		return nil
	}
	return n.kids
}

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
		return n.text
	}
	return ""
}

// open returns a text whose references are no secrets.
func (d *decoder) open(n *node, may allowed) string {
	value, _ := d.expand(n, d.str(n), openRefs|may)
	return value
}

// set reads n, if it is there.
func set[T any](to *T, n *node, read func(*node) T) {
	if n != nil {
		*to = read(n)
	}
}

// whole returns a whole number from low to high.
func (d *decoder) whole(n *node, low, high int64) int64 {
	v, err := strconv.ParseInt(n.text, 10, 64)
	digits := strings.TrimPrefix(n.text, "-")
	switch {
	case n.kind != plain || err != nil && !errors.Is(err, strconv.ErrRange) || len(digits) > 1 && digits[0] == '0' || n.text[0] == '+':
		d.wrong(n, "want a whole number")
	case (err != nil || v < low || v > high) && high > 1<<31:
		d.wrong(n, fmt.Sprintf("want a whole number of at least %d", low))
	case err != nil || v < low || v > high:
		d.wrong(n, fmt.Sprintf("want a whole number from %d to %d", low, high))
	default:
		return v
	}
	return 0
}

// number is whole for a setting that is an int.
func (d *decoder) number(low, high int64) func(*node) int {
	return func(n *node) int { return int(d.whole(n, low, high)) }
}

// each reads the items of a list.
func each[T any](d *decoder, n *node, read func(*node) T) []T {
	all := []T{}
	for _, item := range d.items(n) {
		all = append(all, read(item))
	}
	return all
}

func (d *decoder) boolean(n *node) bool {
	if n.kind != plain && n.kind != boolean || n.text != "true" && n.text != "false" {
		d.wrong(n, "want true or false")
	}
	return n.text == "true"
}

// multiplier returns a number of at least 1.
func (d *decoder) multiplier(n *node) float64 {
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != plain || err != nil || !isJSONNumber(n.text) || v < 1 || v > 1000 || math.IsNaN(v) {
		d.wrong(n, "want a number from 1 to 1000")
	}
	return v
}

// duration returns a duration above zero.
func (d *decoder) duration(n *node) time.Duration {
	text := d.scalar(n)
	v, err := limits.ParseDuration(text)
	switch {
	case text == "":
	case err != nil:
		d.wrong(n, err.Error())
	case v <= 0:
		d.wrong(n, "want a duration above zero")
	}
	return v
}

// scalar returns a text or number as typed, for a reader of its own.
func (d *decoder) scalar(n *node) string {
	if n.kind != plain && n.kind != quoted || n.text == "" {
		return d.str(n)
	}
	return n.text
}

// none reports whether n lifts a limit or a default. It takes nil.
func none(n *node) bool {
	return n != nil && (n.kind == plain || n.kind == quoted) && n.text == "none"
}

// when returns a moment: a duration from the run's start, or RFC 3339 with a
// zone; or none.
func (d *decoder) when(n *node) When {
	text := d.scalar(n)
	if none(n) || text == "" {
		return When{}
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(text)); err == nil {
		return When{At: at, Set: true}
	}
	after, err := limits.ParseDuration(text)
	if err != nil || after <= 0 {
		d.wrong(n, "want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z")
	}
	return When{After: after, Set: true}
}

// sizeUnits are the units that a size may have, in bytes.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// size returns a number of bytes.
func (d *decoder) size(n *node) int64 {
	text := d.scalar(n)
	for _, unit := range sizeUnits {
		count, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		v, err := strconv.ParseUint(count, 10, 32)
		if err != nil || int64(v) > math.MaxInt64/unit.bytes {
			break
		}
		return int64(v) * unit.bytes
	}
	if text != "" {
		d.wrong(n, "want a size, such as 64KiB, 1MB or a number of bytes")
	}
	return 0
}

// checkName refuses what would make two names look like one.
func checkName(s string) error {
	if s != strings.TrimSpace(s) {
		return errors.New("want no white space at the ends")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("want no control characters")
	}
	return nil
}

// name returns s, which was typed at n, if it may be a name or an id.
func (d *decoder) name(n *node, s string) string {
	if err := checkName(s); err != nil {
		d.wrong(n, err.Error())
	}
	return s
}
