package jobspec

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// table hands out the rows of a file of comma-separated values (RFC 4180), or, if
// its name ends in .tsv, of values separated by tabs. Its first row names the fields.
type table struct {
	*rowFeed
	in     bytes.Reader
	csv    *csv.Reader
	names  []string // nil: not read yet
	broken bool     // the names are wrong
}

func newTable(f *rowFeed) *table {
	t := &table{rowFeed: f}
	f.split, f.blank = splitCSV, emptyLine
	t.csv = t.reader(&t.in)
	f.parse = t.row
	return t
}

func (t *table) reader(in io.Reader) *csv.Reader {
	r := csv.NewReader(in)
	r.FieldsPerRecord = -1
	if t.file.ending() == ".tsv" {
		r.Comma = '\t'
	}
	return r
}

func (t *table) rewind() error {
	t.names, t.broken = nil, false
	return t.rowFeed.rewind()
}

func (t *table) next() (entry, error) {
	if t.broken {
		return entry{}, io.EOF
	}
	if t.names == nil {
		if err := t.readNames(); err != nil {
			t.broken = true
			return entry{}, err
		}
	}
	return t.rowFeed.next()
}

func (t *table) readNames() error {
	record, s, err := t.read()
	if err == io.EOF {
		return &Error{Pos: t.file.position(place{}), Text: "an empty file: want a first row with the names of the fields"}
	}
	if err == nil {
		err = checkText(t.file, record, s.line)
	}
	if err == nil {
		t.names, err = t.parseRow(record, s)
	}
	seen := make(map[string]bool)
	for _, name := range t.names {
		if name != "" && seen[name] {
			return t.fault(s.line, fmt.Sprintf("%q: doubled name of a field", name))
		}
		seen[name] = true
	}
	return err
}

// Columns returns the names that the first row of a file gives its fields, as
// for_each: {csv: name} knows them.
func Columns(name string) ([]string, error) {
	s := newSource(Options{})
	defer (&Spec{source: s}).Close()
	r, err := s.open(&file{name: name})
	if err != nil {
		return nil, err
	}
	t := newTable(&rowFeed{records: r})
	if err = t.records.rewind(); err == nil {
		err = t.readNames()
	}
	return t.names, err
}

func (t *table) row(record []byte, s spot) (*item, error) {
	values, err := t.parseRow(record, s)
	if err == nil && len(values) != len(t.names) {
		err = t.fault(s.line, fmt.Sprintf("%d fields, but the first row names %d", len(values), len(t.names)))
	}
	return &item{names: t.names, values: values}, err
}

func (t *table) parseRow(record []byte, s spot) ([]string, error) {
	t.in.Reset(record)
	values, err := t.csv.Read()
	if err == nil {
		return values, nil
	}
	_, err = t.reader(bytes.NewReader(record)).ReadAll() // which counts lines from 1
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, t.fault(s.line+int32(bad.Line)-1, bad.Err.Error())
	}
	return nil, t.fault(s.line, "not a row of comma-separated values")
}

func (t *table) fault(line int32, text string) error {
	return &Error{Pos: t.file.position(place{line: line}), Text: text}
}

// emptyLine reports whether a row has no field: one of blanks or tabs alone has.
func emptyLine(row []byte) bool {
	switch string(row) {
	case "", "\n", "\r\n", "\r": // the last only at the end of a file
		return true
	}
	return false
}

// splitCSV cuts a row off: up to a line break outside of quotes. Within quotes a
// quote is doubled, so an even number of them is in front of that.
func splitCSV(data []byte, atEOF bool) (advance int, row []byte, err error) {
	quoted := false
	for at, b := range data {
		switch {
		case b == '"':
			quoted = !quoted
		case b == '\n' && !quoted:
			return at + 1, data[:at+1], nil
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
