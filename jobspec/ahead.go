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

// batch is what was read ahead, and the nodes that were made of it.
type batch struct {
	parser  *jsonParser
	entries []entry
	err     error // that stands behind them; nil: none
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
			f.fill(b)
			full <- b
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
		for _, e := range b.entries {
			if !yield(e, nil) {
				return
			}
		}
		if b.err == io.EOF || b.err != nil && !yield(entry{}, b.err) {
			return
		}
		empty <- b
	}
}

// fill reads the next batch.
func (f *recordFeed) fill(b *batch) {
	b.entries, b.err = b.entries[:0], nil
	b.parser.reuse()
	for size := 0; len(b.entries) < batchLines && size < batchBytes; {
		e, err := f.nextBy(b.parser)
		if err != nil {
			b.err = err
			return
		}
		b.entries = append(b.entries, e)
		size += int(e.size)
	}
}
