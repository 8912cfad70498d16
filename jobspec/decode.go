package jobspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	if len(d.errs) >= maxErrors {
		return
	}
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
		text := n.text
		if len(text) > 80 {
			text = strings.ToValidUTF8(text[:80], "") + "…"
		}
		d.fail(n, "%q: %s", text, want)
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
