package jobspec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentlimit/limits"
)

// decoder turns nodes into what they mean and collects what is wrong. Its
// methods return a zero value where they report an error, and take a node that
// is not nil unless they say otherwise.
type decoder struct {
	*rules
	errs     Errors
	warnings []Warning

	// Of the job at hand:
	path    string // what paths to its values begin with
	own     *node
	partial bool     // these are the defaults: what a job must have may be absent
	id      string   // its id, once known
	named   bool     // it names its id
	usesID  bool     // ${job:id} was met
	secrets []string // that were put in
	hashed  []byte   // what its hash covers

	// Kept from job to job, to be used again:
	body        twin
	needs       []limits.Need
	lastPattern *regexp.Regexp
}

// rules are what all jobs of a run share.
type rules struct {
	values
	root     *node // the joined documents, without jobs
	defaults *node // nil: none
	table    limits.Table
	pools    []string // patterns of the entries in limits.pools
}

func (d *decoder) fail(n *node, format string, args ...any) {
	d.failAt(n.pos(), n, format, args...)
}

func (d *decoder) failAt(pos Position, n *node, format string, args ...any) {
	d.errs.add(&Error{Pos: pos, Path: d.pathOf(n), Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(n *node, format string, args ...any) {
	d.warnings = append(d.warnings, Warning{n.pos(), fmt.Sprintf(format, args...)})
}

// wrong reports a value that cannot be what it should.
func (d *decoder) wrong(n *node, want string) {
	switch n.kind {
	case list:
		d.fail(n, "a list: %s", want)
	case mapping:
		d.fail(n, "a mapping: %s", want)
	case null:
		d.fail(n, "no value: %s", want)
	default:
		d.fail(n, "%q: %s", n.text, want)
	}
}

// pathOf spells the way to n from the top of its file.
func (d *decoder) pathOf(n *node) string {
	path, found := d.own.pathTo(n)
	if found {
		path = d.path + path
	} else {
		path, _ = d.root.pathTo(n)
	}
	return strings.TrimPrefix(path, ".")
}

// mapping reports whether n is a mapping whose keys are all known.
func (d *decoder) mapping(n *node, known ...string) bool {
	if n.kind != mapping {
		d.wrong(n, "want a mapping of "+strings.Join(known, ", "))
		return false
	}
	ok := true
	for _, kid := range n.kids {
		if !slices.Contains(known, kid.key) {
			d.failAt(kid.keyPos(), kid, "unknown key%s", didYouMean(kid.key, known))
			ok = false
		}
	}
	return ok
}

func didYouMean(typed string, known []string) string {
	if word := nearest(typed, known); word != "" {
		return fmt.Sprintf(": did you mean %q?", word)
	}
	if 0 < len(known) && len(known) <= 10 {
		return ": want " + strings.Join(known, ", ")
	}
	return ""
}

// layers is a mapping of a job in front of the same mapping of the defaults.
type layers struct{ own, base *node }

func (l layers) get(key string) *node {
	if n := l.own.get(key); n != nil {
		return n
	}
	return l.base.get(key)
}

// oneOf returns the one of keys that is there. What a job says itself stands for
// all of them, so that a default body does not meet a job's own json.
func (d *decoder) oneOf(l layers, keys ...string) (found *node) {
	for _, layer := range []*node{l.own, l.base} {
		for _, key := range keys {
			n := layer.get(key)
			if n != nil && found != nil {
				d.failAt(n.keyPos(), n, "want one of %s", strings.Join(keys, ", "))
			} else if n != nil {
				found = n
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// block returns the mapping under key in both layers; its keys must be known.
// Defaults are checked by themselves.
func (d *decoder) block(l layers, key string, known ...string) layers {
	inner := layers{l.own.get(key), l.base.get(key)}
	if inner.own != nil && !d.mapping(inner.own, known...) && inner.own.kind != mapping {
		inner.own = nil
	}
	return inner
}

// pairs calls f with the values of a mapping from names, those of the defaults
// first unless the job has its own. same tells whether two names are one. Both
// nodes may be nil.
func (d *decoder) pairs(own, base *node, same func(a, b string) bool, f func(*node)) {
	if own != nil && own.kind != mapping {
		d.wrong(own, "want a mapping from names to values")
		return
	}
	if base != nil {
		for _, kid := range base.kids {
			if own == nil || !slices.ContainsFunc(own.kids, func(n *node) bool { return same(n.key, kid.key) }) {
				f(kid)
			}
		}
	}
	if own == nil {
		return
	}
	for i, kid := range own.kids {
		if slices.ContainsFunc(own.kids[:i], func(n *node) bool { return same(n.key, kid.key) }) {
			d.failAt(kid.keyPos(), kid, "doubled key")
		}
		f(kid)
	}
}

func equal(a, b string) bool { return a == b }

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
