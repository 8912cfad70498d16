package jobspec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentlimit/limits"
)

// decoder turns nodes into what they mean and collects what is wrong. Its
// methods return a zero value where they report an error.
type decoder struct {
	values
	defaults *node // nil: none
	table    limits.Table
	pools    []string // patterns of the entries in limits.pools

	errs     Errors
	warnings Errors

	// What is being read, and the path to it:
	root      *node
	path      string
	job       *Job // nil: no job
	itemLater bool
	putIn     int  // bytes that references have put in
	faults    int  // how many there were, of which errs may have the first only
	checking  bool // the job is only to be checked: it need be neither whole nor kept

	// For a rewrite: the working folder, empty if there is none to be, what to write
	// for texts of the job that would not be read again as they are, and what else.
	folder  string
	retyped map[*node]string
	bare    map[*node]bool // numbers and switches that references stand for
	dollar  bool           // the job needs theDollar

	// Kept from job to job, to be used again:
	buffer   []byte
	expanded []byte
	typed    []byte
	checked  Job
	sorted   []*node
	needs    []limits.Need
	pattern  *regexp.Regexp
}

func (d *decoder) fail(n *node, format string, args ...any) {
	d.failAt(n.pos(), n, format, args...)
}

// failKey reports what is wrong with the name of n.
func (d *decoder) failKey(n *node, format string, args ...any) {
	d.failAt(n.keyPos(), n, format, args...)
}

func (d *decoder) failAt(pos Position, n *node, format string, args ...any) {
	d.faults++
	if len(d.errs) >= maxErrors {
		return
	}
	e := &Error{Pos: pos, Path: d.pathOf(n), Text: fmt.Sprintf(format, args...)}
	if d.item != nil {
		e.Row = d.item.pos
	}
	d.errs.add(e)
}

func (d *decoder) warn(n *node, format string, args ...any) {
	d.warnings.add(&Error{Pos: n.pos(), Path: d.pathOf(n), Text: fmt.Sprintf(format, args...)})
}

// wrong reports a value that cannot be what it should.
func (d *decoder) wrong(n *node, want string) {
	text := n.text
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	is := [...]string{null: "no value", list: "a list", mapping: "a mapping"}[n.kind]
	if strings.Contains(text, "://") {
		is = "a URL (it is not shown, it may hold secrets)"
	}
	d.fail(n, "%s: %s", cmp.Or(is, strconv.Quote(text)), want)
}

// pathOf spells the way to n from the top of its file.
func (d *decoder) pathOf(n *node) string {
	path, _ := d.root.pathTo(n)
	return strings.TrimPrefix(d.path+path, ".")
}

// field is one key that a mapping may have, and what reads its value.
type field[T any] struct {
	key  string
	read func(d *decoder, to *T, n *node)
}

// fields reads the mapping n into to, in the order of known, and refuses all
// other keys.
func fields[T any](d *decoder, to *T, n *node, known []field[T]) {
	if n.kind != mapping {
		d.wrong(n, "want a mapping of "+strings.Join(keys(known), ", "))
		return
	}
	var values [maxKeys]*node
	for _, kid := range n.kids {
		at := slices.IndexFunc(known, func(f field[T]) bool { return f.key == kid.key })
		if at < 0 {
			d.failKey(kid, "unknown key%s", didYouMean(kid.key, keys(known)))
			continue
		}
		if choice := n.choice(kid.key); choice != nil && n.rival(kid.key) != kid {
			d.failKey(kid, "want one of %s", strings.Join(choice, ", "))
		}
		values[at] = cmp.Or(values[at], kid)
	}
	for at, f := range known {
		if values[at] != nil {
			f.read(d, to, values[at])
		}
	}
}

// maxKeys is the most that a mapping knows.
const maxKeys = 16

func keys[T any](known []field[T]) (all []string) {
	for _, f := range known {
		all = append(all, f.key)
	}
	return all
}

// pairs calls read with each value of a mapping from names of the user's own.
func (d *decoder) pairs(n *node, read func(*node)) {
	if n.kind != mapping {
		d.wrong(n, "want a mapping from names to values")
		return
	}
	for _, kid := range n.kids {
		read(kid)
	}
}

// items returns what a list holds.
func (d *decoder) items(n *node) []*node {
	if n.kind != list {
		d.wrong(n, "want a list")
		return nil
	}
	return n.kids
}

// each reads the items of a list.
func each[T any](d *decoder, n *node, read func(*node) T) []T {
	all := []T{}
	for _, item := range d.items(n) {
		all = append(all, read(item))
	}
	return all
}
