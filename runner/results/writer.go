package results

import (
	"bytes"
	"io"
)

// Writer appends records to a stream, one JSON line each. It is for one
// goroutine at a time.
type Writer struct {
	out io.Writer
	buf []byte
	err error // the first; nothing is written after it
}

// NewWriter returns a Writer to a stream that nobody else writes to, such as
// standard output. For a file see [Open].
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Partial is the error of records of which only the first could be written.
type Partial struct {
	Records int // that are there, whole
	Err     error
}

func (p *Partial) Error() string { return "write results: " + p.Err.Error() }

// Unwrap returns why.
func (p *Partial) Unwrap() error { return p.Err }

// Append writes the records in one Write. The error is a [*Partial]. After it nothing
// more is written, and every further call returns that first error. What was appended
// to a file outlives this process at once, but a crash of the machine only
// after [File.Close]: a sync for each record would cost more than most jobs.
func (w *Writer) Append(records ...*Record) error {
	if w.err != nil || len(records) == 0 {
		return w.err
	}
	w.buf = w.buf[:0]
	for _, r := range records {
		w.buf = appendRecord(w.buf, r)
	}
	n, err := w.out.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = &Partial{bytes.Count(w.buf[:n], []byte("\n")), err}
	}
	return w.err
}
