package jobspec

import (
	"io"
	"iter"
)

// entries returns what f has, up to the end. What is read of a file of lines is read
// ahead by a goroutine of its own, which is gone when the loop is left, so that one
// core parses while another checks.
func entries(f feed) iter.Seq2[entry, error] {
	if lines, ok := f.(*recordFeed); ok {
		return lines.ahead
	}
	return func(yield func(entry, error) bool) {
		for e, err := f.next(); err != io.EOF && yield(e, err); e, err = f.next() {
		}
	}
}

// batch is some lines that were read ahead, and the nodes that were made of them.
type batch struct {
	parser *jsonParser
	lines  []parsed
}

type parsed struct {
	entry
	err error
}

const (
	batchLines = 64
	batchBytes = 64 << 10 // with the last line above it
)

func (f *recordFeed) ahead(yield func(entry, error) bool) {
	// Two batches go round; so no channel is ever full.
	empty, full := make(chan *batch, 2), make(chan *batch, 2)
	go func() {
		defer close(full)
		for b := range empty {
			more := f.fill(b)
			full <- b
			if !more {
				return
			}
		}
	}()
	defer func() {
		close(empty)
		for range full { // until the other is gone
		}
	}()
	for range cap(empty) {
		empty <- &batch{parser: newJSONParser(f.file)}
	}
	for b := range full {
		for _, line := range b.lines {
			if !yield(line.entry, line.err) {
				return
			}
		}
		empty <- b
	}
}

// fill reads the next batch, and reports whether there may be more.
func (f *recordFeed) fill(b *batch) (more bool) {
	b.lines = b.lines[:0]
	b.parser.reuse()
	for size := 0; len(b.lines) < batchLines && size < batchBytes; {
		e, err := f.nextBy(b.parser)
		if err == io.EOF {
			return false
		}
		b.lines = append(b.lines, parsed{e, err})
		size += int(e.size)
	}
	return true
}
