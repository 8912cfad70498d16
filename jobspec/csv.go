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
	*recordFeed
	in     bytes.Reader
	csv    *csv.Reader
	names  []string // nil: not read yet
	broken bool     // the names are wrong
}

func newTable(f *recordFeed) *table {
	f.form = rows
	t := &table{recordFeed: f}
	t.csv = t.reader(&t.in)
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
	return t.recordFeed.next()
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
		t.names, err = t.parse(record, s.line)
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
	t := newTable(&recordFeed{records: r})
	err = t.readNames()
	return t.names, err
}

func (t *table) row(_ *jsonParser, record []byte, line int32) (*item, error) {
	values, err := t.parse(record, line)
	if err == nil && len(values) != len(t.names) {
		err = t.fault(line, fmt.Sprintf("%d fields, but the first row names %d", len(values), len(t.names)))
	}
	return &item{names: t.names, values: values, alike: true}, err
}

func (t *table) parse(record []byte, line int32) ([]string, error) {
	t.in.Reset(record)
	values, err := t.csv.Read()
	if err == nil {
		return values, nil
	}
	_, err = t.reader(bytes.NewReader(record)).ReadAll() // which counts lines from 1
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, t.fault(line+int32(bad.Line)-1, bad.Err.Error())
	}
	return nil, t.fault(line, "not a row of comma-separated values")
}

func (t *table) fault(line int32, text string) error {
	return &Error{Pos: t.file.position(place{line: line}), Text: text}
}

// rows end with a line break outside of quotes. Within quotes a quote is doubled, so an
// even number of them is in front of that. A row of blanks or tabs alone has a field.
var rows = form{rowEnd, func(row []byte) bool { return len(row) == 0 }, '\n'}

func rowEnd(data []byte, seen int, quoted, _ bool) (size int, open bool) {
	line := -1 // where the next one ends
	for at := seen; ; {
		if line < at {
			line = len(data)
			if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
				line = at + n
			}
		}
		switch quote := bytes.IndexByte(data[at:line], '"'); {
		case quote >= 0:
			quoted = !quoted
			at += quote + 1
		case line == len(data):
			return 0, quoted
		case !quoted:
			return line + 1, false
		default:
			at = line + 1
		}
	}
}
