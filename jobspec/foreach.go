package jobspec

import (
	"slices"
	"strings"
)

// item is one row of a for_each: what ${item:FIELD} stands for.
type item struct {
	names  []string
	values []string
	alike  bool // all rows have the same names
	pos    Position
}

// get returns the value of a field.
func (i *item) get(name string) (value string, known bool) {
	at := slices.Index(i.names, name)
	if at < 0 {
		return "", false
	}
	return i.values[at], true
}

// rowsOf is what a for_each says: where the rows are.
type rowsOf struct {
	format string
	path   string  // of a file; "-" is standard input
	values []*node // written in the document
}

var forEachFields = []field[rowsOf]{
	{"csv", (*decoder).rowsFile},
	{"jsonl", (*decoder).rowsFile},
	{"lines", (*decoder).rowsFile},
	{"values", func(d *decoder, r *rowsOf, n *node) { r.format, r.values = n.key, d.items(n) }},
}

func (d *decoder) rowsFile(r *rowsOf, n *node) {
	if r.format, r.path = n.key, n.text; n.text != "-" {
		r.path = d.filePath(n, forAll)
	}
}

// forEach returns the feed of the job n, whose path is given; nil if something is
// wrong.
func (s *source) forEach(n *node, path string) feed {
	d, each := &s.d, n.get("for_each")
	d.root, d.path = n, path
	faults := len(d.errs)
	var of rowsOf
	if fields(d, &of, each, forEachFields); of.format == "" && len(d.errs) == faults {
		d.wrong(each, "want one of "+strings.Join(keys(forEachFields), ", "))
	}
	if len(d.errs) > faults {
		return nil
	}
	job := *n
	job.kids = slices.DeleteFunc(slices.Clone(n.kids), func(kid *node) bool { return kid == each })
	joined := d.withDefaults(&job)
	d.checkTemplate(joined)
	d.root = n
	var r records
	if of.format != "values" {
		var err error
		if r, err = s.open(&file{name: of.path}); err != nil {
			d.fail(each.kids[0], "%v", err)
		}
	}
	entryOf := func(row *item, err error) (entry, error) {
		if err != nil {
			return entry{}, err
		}
		return entry{n: joined, path: path, item: row, joined: true}, nil
	}
	switch {
	case len(d.errs) > faults: // each row would say it again
		return nil
	case of.format == "values":
		return &listFeed{items: of.values, make: func(i int) (entry, error) { return entryOf(d.itemOf(of.values[i], "value")) }}
	case of.format == "csv":
		return newTable(r, entryOf)
	case of.format == "jsonl":
		p := newJSONParser(r.file)
		return &recordFeed{r, func(record []byte, line int32) (entry, error) {
			n, err := p.parse(record, line)
			if err != nil {
				return entry{}, err
			}
			row, err := d.itemOf(n, "")
			if err == nil {
				row.pos.Column = 0
			}
			return entryOf(row, err)
		}}
	}
	return s.lineRows(r, entryOf)
}

// lineRows returns the feed of a file whose lines are rows with one field.
func (s *source) lineRows(r records, entryOf func(*item, error) (entry, error)) *recordFeed {
	if s.nul && r.file.name == stdin {
		r.form = linesToNUL
	}
	names := []string{"line"}
	return &recordFeed{r, func(record []byte, line int32) (entry, error) {
		row := &item{names: names, values: []string{string(record)}, alike: true, pos: r.file.position(place{line: line})}
		if r.form.mark == 0 { // it need be no text
			return entryOf(row, nil)
		}
		return entryOf(row, checkText(r.file, record, line))
	}}
}

// itemOf returns the item that n is: a mapping from names to scalars, or, where it
// has a name, one scalar. A document has a name, and no null; in other files, that is
// data.
func (d *decoder) itemOf(n *node, name string) (*item, error) {
	row, kids := &item{pos: n.pos()}, n.kids
	if n.kind != mapping {
		if name == "" || n.kind == list {
			return nil, &Error{Pos: n.pos(), Text: "want a mapping from names to values"}
		}
		only := *n
		only.key = name
		kids = []*node{&only}
	}
	for _, kid := range kids {
		if name != "" && kid.kind == null {
			return nil, &Error{Pos: kid.pos(), Text: "no value: want a text, which may be empty in quotes"}
		}
		row.names = append(row.names, kid.key)
		row.values = append(row.values, d.itemText(kid))
	}
	return row, nil
}

// itemText returns a value as text: a scalar as it was typed, anything else as
// JSON. Null is empty.
func (d *decoder) itemText(n *node) string {
	switch {
	case n.kind >= list:
		return string(d.json(nil, n, asTyped))
	case n.kind == null:
		return ""
	}
	return n.text
}
