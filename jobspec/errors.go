package jobspec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong in a job file, and where.
type Error struct {
	Pos  Position
	Path string   // such as limits.hosts.api.example.com.rate; empty if unknown
	Text string   // what is wrong
	Row  Position // of the for_each, for which alone it is so; zero: for all, or no row
}

// Error spells the place, the path and what is wrong there.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.what() }

func (e *Error) what() string {
	text := e.Text
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Row != (Position{}) {
		text += " (row " + e.Row.String() + ")"
	}
	return text
}

// Errors is everything that is wrong in the files of one run, each thing once.
// Reading stops at a thousand.
type Errors []*Error

const (
	shownErrors = 10
	maxErrors   = 1000
)

// All lists every error, one a line.
func (e Errors) All() string { return e.list(len(e)) }

// Error lists the first ten, one a line, and says how many more there are.
func (e Errors) Error() string { return e.list(shownErrors) }

func (e Errors) list(most int) string {
	var lines []string
	for _, one := range e[:min(len(e), most)] {
		lines = append(lines, one.Error())
	}
	if more := len(e) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// add keeps what is new: a fault in the defaults is met again by every job.
func (e *Errors) add(more ...*Error) {
	for _, one := range more {
		known := func(have *Error) bool { return have.Pos == one.Pos && have.Text == one.Text && have.Row == one.Row }
		if !slices.ContainsFunc(*e, known) {
			*e = append(*e, one)
		}
	}
}

// take keeps what err says is wrong in a file; any other error it returns.
func (e *Errors) take(err error) error {
	switch err := err.(type) {
	case *Error:
		e.add(err)
	case Errors:
		e.add(err...)
	default:
		return err
	}
	return nil
}

// Invalid is the error of one bad line or row of a pipe.
type Invalid struct {
	Pos Position // of that line or row alone
	Err error
}

// Error spells the place and what is wrong there.
func (e *Invalid) Error() string { return e.Pos.String() + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Invalid) Unwrap() error { return e.Err }

// invalid makes one error of all that is wrong with one job. That of a row (nil: it
// is of none) is at the row: all rows share the place at which they are put in.
func invalid(errs Errors, row *item) *Invalid {
	at := errs[0].Pos
	var all []string
	for _, one := range errs {
		text := one.what()
		if row != nil {
			text = (&Error{Pos: one.Pos, Path: one.Path, Text: one.Text}).Error()
		}
		all = append(all, text)
	}
	if row != nil {
		at = row.pos
	}
	return &Invalid{Pos: at, Err: errors.New(strings.Join(all, "; "))}
}

// didYouMean ends a message about a name that is not known.
func didYouMean(typed string, known []string) string {
	for edits := range min(4, len(typed)/2+1) {
		for _, word := range known {
			if near(strings.ToLower(typed), word, edits) {
				return fmt.Sprintf(": did you mean %q?", word)
			}
		}
	}
	if 0 < len(known) && len(known) <= 10 {
		return ": want " + strings.Join(known, ", ")
	}
	return ""
}

// near reports whether b can be made of a by adding, dropping or changing so
// many letters.
func near(a, b string, edits int) bool {
	switch {
	case edits < 0:
		return false
	case a == "" || b == "":
		return len(a)+len(b) <= edits
	case a[0] == b[0]:
		return near(a[1:], b[1:], edits)
	}
	return near(a[1:], b, edits-1) || near(a, b[1:], edits-1) || near(a[1:], b[1:], edits-1)
}
