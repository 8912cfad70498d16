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

// The keys of a for_each, of which it has one: a file, whose path they read, or what is
// written in the document.
var forEachFields = []field[string]{
	{"csv", (*decoder).rowsFile},
	{"jsonl", (*decoder).rowsFile},
	{"lines", (*decoder).rowsFile},
	{"values", func(d *decoder, _ *string, n *node) { d.items(n) }},
}

func (d *decoder) rowsFile(path *string, n *node) {
	if *path = n.text; n.text != stdin {
		*path = d.filePath(n, forAll)
	}
}

// forEach returns the feed of the job n, which stands at that path; nil if something is
// wrong.
func (s *source) forEach(n *node, at string) feed {
	d, each := &s.d, n.get("for_each")
	d.root, d.path = n, at
	faults, errs := d.faults, len(d.errs)
	var path string
	if fields(d, &path, each, forEachFields); len(each.kids) == 0 && d.faults == faults {
		d.wrong(each, "want one of "+strings.Join(keys(forEachFields), ", "))
	}
	if d.faults > faults {
		return nil
	}
	job := *n
	job.kids = slices.DeleteFunc(slices.Clone(n.kids), func(kid *node) bool { return kid == each })
	joined := d.withDefaults(&job)
	d.checkTemplate(joined)
	d.root = n
	row := func(i *item) entry { return entry{n: joined, path: at, item: i} }
	rows := each.kids[0]
	if rows.key == "values" {
		if len(d.errs) > errs { // each row would say it again
			return nil
		}
		return &listFeed{nodes: rows.kids, entry: func(n *node, _ int) (entry, error) {
			i, err := d.itemOf(n, "value")
			return row(i), err
		}}
	}
	r, err := s.open(&file{name: path})
	if err != nil {
		d.fail(rows, "%v", err)
	}
	if len(d.errs) > errs {
		return nil
	}
	return s.rowsOf(r, rows.key, row)
}

// rowsOf returns the feed of the rows of a file.
func (s *source) rowsOf(r *records, format string, row func(*item) entry) feed {
	f := newRecordFeed(r)
	parse := func(p *jsonParser, record []byte, line int32) (*item, error) {
		n, err := p.parse(record, line)
		if err != nil {
			return nil, err
		}
		return s.d.itemOf(n, "")
	}
	var feed feed = f
	switch format {
	case "csv":
		t := newTable(f)
		feed, parse = t, t.row
	case "lines":
		if s.NUL && r.file.name == stdin {
			f.form = linesToNUL
		}
		names := []string{"line"}
		parse = func(_ *jsonParser, record []byte, _ int32) (*item, error) {
			return &item{names: names, values: []string{string(record)}, alike: true}, nil
		}
	}
	f.make = func(p *jsonParser, record []byte, line int32) (entry, error) {
		if f.form.mark != 0 {
			if err := checkText(f.file, record, line); err != nil {
				return entry{}, err
			}
		}
		i, err := parse(p, record, line)
		if err != nil {
			return entry{}, err
		}
		i.pos = f.file.position(place{line: line})
		return row(i), nil
	}
	return feed
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
