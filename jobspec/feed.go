package jobspec

import (
	"fmt"
	"io"
)

// feed hands out the jobs of one place, in their order: the jobs of a document
// between those with for_each, the rows of one for_each, or the lines of a file.
type feed interface {
	// next returns the next entry, or io.EOF. An [*Error] stands for a bad one; any
	// other error is final.
	next() (entry, error)
	// find returns an entry that next has returned before. A pipe has none.
	find(spot) (entry, error)
	// rewind makes next begin anew. It comes before the first next.
	rewind() error
	// piped reports whether the entries can be read only once.
	piped() bool
}

// entry is a value that should be a job. It is good until its feed is used again.
type entry struct {
	spot
	n      *node
	path   string // to n, from the top of its file
	item   *item  // what ${item:…} stands for; nil: nothing
	joined bool   // the defaults are in n
	file   *file  // that the entry comes from
}

// spot is where a feed finds an entry again.
type spot struct {
	offset int64 // in bytes; in a list, the index
	size   int32
	line   int32
	sum    uint32 // of the bytes
	next   int32  // in the index: number of the lane's next job, 0 or notMine
}

// notMine marks the spot of a job that is another shard's.
const notMine = -1

// listFeed hands out entries of what is written in a document.
type listFeed struct {
	items []*node
	make  func(i int) (entry, error) // of items[i]
	at    int
}

// jobFeed returns the feed of jobs of a document, the first of which has that index.
func jobFeed(first int) *listFeed {
	f := &listFeed{}
	f.make = func(i int) (entry, error) { return entry{n: f.items[i], path: jobPath(first + i)}, nil }
	return f
}

func (f *listFeed) next() (entry, error) {
	if f.at == len(f.items) {
		return entry{}, io.EOF
	}
	f.at++
	return f.find(spot{offset: int64(f.at - 1)})
}

func (f *listFeed) find(s spot) (entry, error) {
	n := f.items[s.offset]
	e, err := f.make(int(s.offset))
	s.line = n.at.line
	e.spot, e.file = s, n.file
	return e, err
}

func (f *listFeed) rewind() error { f.at = 0; return nil }
func (f *listFeed) piped() bool   { return false }

func jobPath(index int) string { return fmt.Sprintf("jobs[%d]", index) }

// recordFeed hands out entries of the records of a file.
type recordFeed struct {
	records
	make func(record []byte, line int32) (entry, error)
}

// newLineFeed returns the feed of a file whose lines are jobs as parse has it.
func newLineFeed(r records, parse func(p *jsonParser, line []byte, number int32) (*node, error)) *recordFeed {
	p := newJSONParser(r.file)
	return &recordFeed{r, func(line []byte, number int32) (entry, error) {
		n, err := parse(p, line, number)
		return entry{n: n}, err
	}}
}

func (f *recordFeed) next() (entry, error) {
	record, s, err := f.read()
	return f.entry(record, s, err)
}

func (f *recordFeed) find(s spot) (entry, error) {
	record, err := f.readAt(s)
	return f.entry(record, s, err)
}

func (f *recordFeed) entry(record []byte, s spot, err error) (entry, error) {
	if err != nil {
		return entry{}, err
	}
	e, err := f.make(record, s.line)
	e.spot, e.file = s, f.file
	return e, err
}
