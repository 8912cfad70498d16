package jobspec

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"unicode/utf8"
)

// maxRecord bounds a line of JSON Lines and a row; a larger body belongs into a
// file.
const maxRecord = 16 << 20

// byteMark is the mark that some editors put in front of UTF-8.
var byteMark = []byte("\xef\xbb\xbf")

// records reads a file record by record.
type records struct {
	file *file
	in   io.Reader
	disk *os.File // where records are found again; nil: it can be read only once
	form form

	scan    *bufio.Scanner // nil: nothing was read yet
	end     spot           // behind the record that was read; its size is that record's
	seen    int            // bytes of the record that is being read, in which it does not end, and
	quoted  bool           // whether a quote is open behind them
	tooLong bool           // the record that is being read
	seed    maphash.Seed
	found   []byte // what was read last to find a record, and what is behind it
	foundAt int64
}

// form is how records follow one another.
type form struct {
	// end returns how long the first record of data is; 0: longer than data, unless
	// that is all there is. It did not end in the bytes seen before, behind which a
	// quote may have been open, as one may be behind data.
	end   func(data []byte, seen int, quoted, all bool) (size int, open bool)
	blank func(record []byte) bool // whether it is none, without what ended it
	mark  byte                     // ends a line; what ends in NUL need be no text
}

// lines are as most files have them, and those that end in NUL as find -print0 and
// xargs -0 have them.
var (
	lines      = form{endIn('\n'), func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }, '\n'}
	linesToNUL = form{endIn(0), func([]byte) bool { return false }, 0}
)

func endIn(mark byte) func([]byte, int, bool, bool) (int, bool) {
	return func(data []byte, seen int, _, _ bool) (int, bool) {
		if at := bytes.IndexByte(data[seen:], mark); at >= 0 {
			return seen + at + 1, false
		}
		return 0, false
	}
}

func (r *records) piped() bool { return r.disk == nil }

// cut splits the records off. One that is too long ends a file that can only be
// refused; a pipe's is thrown away as it comes. What stands in front of an error of
// reading is no record, unless it is a whole one.
func (r *records) cut(data []byte, atEOF bool) (advance int, record []byte, err error) {
	broken := r.scan.Err() != nil
	n, quoted := r.form.end(data, r.seen, r.quoted, atEOF && !broken)
	switch {
	case n > 0:
		advance, record = n, data[:n]
	case broken:
		r.seen = 0
		return 0, nil, nil
	case atEOF && len(data) > 0:
		advance, record = len(data), data
	case len(data) < maxRecord:
		r.seen, r.quoted = len(data), quoted
		return 0, nil, nil
	default:
		if r.tooLong = true; r.disk != nil {
			return 0, nil, bufio.ErrFinalToken
		}
		advance = len(data)
	}
	r.seen, r.quoted = 0, quoted && record == nil
	r.end.offset += int64(advance)
	r.end.line += int32(bytes.Count(data[:advance], []byte{r.form.mark}))
	r.end.size = int32(advance)
	return advance, record, nil
}

// read returns the next record, which is good until the next call, and where it
// is; or io.EOF.
func (r *records) read() ([]byte, spot, error) {
	if r.scan == nil {
		r.scan = bufio.NewScanner(r.in)
		r.scan.Buffer(make([]byte, 64<<10), maxRecord)
		r.scan.Split(r.cut)
	}
	var line int32
	for {
		line = r.end.line + 1
		if !r.scan.Scan() {
			break
		}
		s := spot{offset: r.end.offset - int64(r.end.size), size: r.end.size, line: line}
		record := r.trim(r.scan.Bytes(), s)
		if r.tooLong {
			break
		}
		if !r.form.blank(record) {
			s.sum = r.sum(record)
			return record, s, nil
		}
	}
	switch err := r.scan.Err(); {
	case r.tooLong:
		r.tooLong = false
		return nil, spot{}, &Error{Pos: r.file.position(place{line: line}), Text: fmt.Sprintf("a line of over %d MiB", maxRecord>>20)}
	case err != nil:
		return nil, spot{}, fmt.Errorf("read job file: %w", r.file.about(err))
	}
	return nil, spot{}, io.EOF
}

// window is how much is read at once where records follow one another.
const window = 64 << 10

// readAt returns a record that read has returned before. It is good until the
// next call.
func (r *records) readAt(s spot) ([]byte, error) {
	from, size := s.offset-r.foundAt, int64(s.size)
	if from < 0 || from+size > int64(len(r.found)) {
		if from == int64(len(r.found)) {
			size = max(size, window)
		}
		r.found = slices.Grow(r.found[:0], int(size))[:size]
		n, err := r.disk.ReadAt(r.found, s.offset)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read job file: %w", err)
		}
		r.found, r.foundAt, from = r.found[:n], s.offset, 0
	}
	record := r.trim(r.found[from:min(from+int64(s.size), int64(len(r.found)))], s)
	if r.sum(record) != s.sum {
		return nil, fmt.Errorf("read job file: %s:%d: it was changed in the meantime", r.file, s.line)
	}
	return record, nil
}

// trim takes away what ended a record, and what stands in front of the first.
func (r *records) trim(record []byte, s spot) []byte {
	if s.offset == 0 {
		record = bytes.TrimPrefix(record, byteMark)
	}
	record = bytes.TrimSuffix(record, []byte{r.form.mark})
	if r.form.mark == '\n' {
		record = bytes.TrimSuffix(record, []byte("\r"))
	}
	return record
}

func (r *records) sum(record []byte) uint32 { return uint32(maphash.Bytes(r.seed, record)) }

// checkText refuses what no job file may hold: UTF-16, bytes that are not UTF-8,
// and NUL. The data begins on a line of that number.
func checkText(f *file, data []byte, line int32) error {
	fault := func(at int, text string) error {
		return &Error{Pos: f.position(place{line, 1}.after(data[:at])), Text: text}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return fault(0, "UTF-16: save the file as UTF-8")
	}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return nil // far quicker than to look for the place
	}
	for at, r := range string(data) {
		switch {
		case r == 0:
			return fault(at, "a NUL byte: save the file as UTF-8 text")
		case r == utf8.RuneError && !bytes.HasPrefix(data[at:], []byte("\ufffd")):
			return fault(at, "a byte that is not UTF-8")
		}
	}
	return nil
}
