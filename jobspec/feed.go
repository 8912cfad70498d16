package jobspec

import (
	"fmt"
	"io"
)

// feed hands out the jobs of one place, once and in their order: the jobs of a document
// between those with for_each, the rows of one for_each, or the lines of a file.
type feed interface {
	// next returns the next entry, or io.EOF. An [*Error] stands for a bad one; any
	// other error is final.
	next() (entry, error)
	// find returns an entry that next has returned before. A pipe has none.
	find(spot) (entry, error)
	// piped reports whether find has none.
	piped() bool
}

// entry is a value that should be a job. It is good until its feed is used again.
type entry struct {
	spot
	n    *node
	path string // to n, from the top of its file
	item *item  // what ${item:…} stands for, and the defaults are in n; nil: nothing
	file *file  // that the entry comes from
}

// spot is where a feed finds an entry again.
type spot struct {
	offset int64 // in bytes; in a list, the index
	size   int32
	line   int32
	sum    uint32 // of the bytes
	next   int32  // in the index: number of the lane's next job
}

// listFeed hands out jobs of a document, or those of values that are written there.
type listFeed struct {
	nodes []*node
	at    int
	entry func(n *node, index int) (entry, error)
}

// newListFeed returns the feed of jobs, of which the first has that index in its
// document.
func newListFeed(jobs []*node, first int) *listFeed {
	return &listFeed{nodes: jobs, entry: func(n *node, index int) (entry, error) {
		return entry{n: n, path: jobPath(first + index)}, nil
	}}
}

func (f *listFeed) next() (entry, error) {
	if f.at == len(f.nodes) {
		return entry{}, io.EOF
	}
	f.at++
	return f.find(spot{offset: int64(f.at - 1)})
}

func (f *listFeed) find(s spot) (entry, error) {
	n := f.nodes[s.offset]
	e, err := f.entry(n, int(s.offset))
	s.line = n.at.line
	e.spot, e.file = s, n.file
	return e, err
}

func (f *listFeed) piped() bool { return false }

func jobPath(index int) string { return fmt.Sprintf("jobs[%d]", index) }

// recordFeed hands out the records of a file as jobs.
type recordFeed struct {
	*records
	parser *jsonParser
	// make returns what a record says, of which it may use what the parser makes. It is
	// called by one goroutine at a time, which need not be the decoder's.
	make func(p *jsonParser, record []byte, line int32) (entry, error)
}

func newRecordFeed(r *records) *recordFeed {
	return &recordFeed{records: r, parser: newJSONParser(r.file)}
}

// newLineFeed returns the feed of lines, of which job returns the jobs.
func newLineFeed(r *records, job func(p *jsonParser, line []byte, number int32) (*node, error)) *recordFeed {
	f := newRecordFeed(r)
	f.make = func(p *jsonParser, line []byte, number int32) (entry, error) {
		n, err := job(p, line, number)
		return entry{n: n}, err
	}
	return f
}

func (f *recordFeed) next() (entry, error) {
	f.parser.reuse()
	return f.nextBy(f.parser)
}

// nextBy is next with a parser that may keep what it has made.
func (f *recordFeed) nextBy(p *jsonParser) (entry, error) {
	record, s, err := f.read()
	if err != nil {
		return entry{}, err
	}
	return f.entry(p, record, s)
}

func (f *recordFeed) find(s spot) (entry, error) {
	record, err := f.readAt(s)
	if err != nil {
		return entry{}, err
	}
	f.parser.reuse()
	return f.entry(f.parser, record, s)
}

func (f *recordFeed) entry(p *jsonParser, record []byte, s spot) (entry, error) {
	e, err := f.make(p, record, s.line)
	e.spot, e.file = s, f.file
	return e, err
}
