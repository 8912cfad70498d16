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

// forEach is what makes a job of each row.
type forEach struct {
	d      *decoder
	job    *node // without for_each
	joined *node // with the defaults
	path   string
}

func (t *forEach) rewind() { t.joined = t.d.withDefaults(t.job) }

func (t *forEach) entry(row *item, s spot, f *file) entry {
	return entry{spot: s, n: t.joined, path: t.path, item: row, joined: true, file: f}
}

// valueFeed makes jobs of values that are written in the document.
type valueFeed struct {
	forEach
	listFeed
}

func (f *valueFeed) rewind() error {
	f.forEach.rewind()
	return f.listFeed.rewind()
}

func (f *valueFeed) next() (entry, error) {
	e, err := f.listFeed.next()
	if err != nil {
		return entry{}, err
	}
	return f.find(e.spot)
}

func (f *valueFeed) find(s spot) (entry, error) {
	n := f.jobs[s.offset]
	s.line = n.at.line
	row, err := f.d.itemOf(n, "value")
	return f.forEach.entry(row, s, n.file), err
}

// rowFeed makes jobs of the rows of a file.
type rowFeed struct {
	forEach
	records
	parse func(record []byte, s spot) (*item, error)
}

func (f *rowFeed) rewind() error {
	f.forEach.rewind()
	return f.records.rewind()
}

func (f *rowFeed) next() (entry, error) {
	record, s, err := f.read()
	if err != nil {
		return entry{}, err
	}
	return f.entry(record, s)
}

func (f *rowFeed) find(s spot) (entry, error) {
	record, err := f.readAt(s)
	if err != nil {
		return entry{}, err
	}
	return f.entry(record, s)
}

func (f *rowFeed) entry(record []byte, s spot) (entry, error) {
	if f.form.mark != 0 {
		if err := checkText(f.file, record, s.line); err != nil {
			return entry{}, err
		}
	}
	row, err := f.parse(record, s)
	if err != nil {
		return entry{}, err
	}
	row.pos = f.file.position(place{line: s.line})
	return f.forEach.entry(row, s, f.file), nil
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
	d.checkTemplate(d.withDefaults(&job))
	d.root = n
	t := forEach{d: d, job: &job, path: path}
	f := &rowFeed{forEach: t}
	if of.format != "values" {
		var err error
		if f.records, err = s.open(&file{name: of.path}); err != nil {
			d.fail(each.kids[0], "%v", err)
		}
	}
	switch {
	case len(d.errs) > faults: // each row would say it again
		return nil
	case of.format == "values":
		return &valueFeed{t, listFeed{jobs: of.values}}
	}
	switch of.format {
	case "csv":
		return newTable(f)
	case "jsonl":
		parser := newJSONParser(f.file)
		f.parse = func(record []byte, s spot) (*item, error) {
			n, err := parser.parse(record, s.line)
			if err != nil {
				return nil, err
			}
			return d.itemOf(n, "")
		}
	default:
		if s.nul && of.path == "-" {
			f.form = linesToNUL
		}
		names := []string{"line"}
		f.parse = func(record []byte, _ spot) (*item, error) {
			return &item{names: names, values: []string{string(record)}, alike: true}, nil
		}
	}
	return f
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
