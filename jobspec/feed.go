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

// listFeed hands out jobs of a document.
type listFeed struct {
	jobs  []*node
	first int // index of jobs[0] in its document
	at    int
}

func (f *listFeed) next() (entry, error) {
	if f.at == len(f.jobs) {
		return entry{}, io.EOF
	}
	f.at++
	return f.find(spot{offset: int64(f.at - 1)})
}

func (f *listFeed) find(s spot) (entry, error) {
	n := f.jobs[s.offset]
	s.line = n.at.line
	return entry{spot: s, n: n, path: jobPath(f.first + int(s.offset)), file: n.file}, nil
}

func (f *listFeed) rewind() error { f.at = 0; return nil }
func (f *listFeed) piped() bool   { return false }

func jobPath(index int) string { return fmt.Sprintf("jobs[%d]", index) }

// lineFeed hands out the lines of a file as jobs.
type lineFeed struct {
	records
	parser *jsonParser
	// job returns the job that a line stands for, of which it may use what the parser
	// makes; several goroutines may call it.
	job func(p *jsonParser, line []byte, number int32) (*node, error)
}

func newLineFeed(r records) *lineFeed {
	return &lineFeed{r, newJSONParser(r.file), (*jsonParser).add}
}

func (f *lineFeed) next() (entry, error) {
	line, s, err := f.read()
	if err != nil {
		return entry{}, err
	}
	return f.entry(line, s)
}

func (f *lineFeed) find(s spot) (entry, error) {
	line, err := f.readAt(s)
	if err != nil {
		return entry{}, err
	}
	return f.entry(line, s)
}

func (f *lineFeed) entry(line []byte, s spot) (entry, error) {
	f.parser.reuse()
	n, err := f.job(f.parser, line, s.line)
	return entry{spot: s, n: n, file: f.file}, err
}
