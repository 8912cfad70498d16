package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// version is the only one there is so far; what begins every record names it.
const (
	version     = 1
	recordStart = `{"v":1,`
)

// maxLine bounds a line: up to 8 MiB are kept of each of two streams, of which a byte
// may be written as six, and there is the rest.
const maxLine = 128 << 20

// ErrTorn is the error of a last line that a crash cut off in the middle.
var ErrTorn = errors.New("cut off in the middle")

// Read returns the records of a results file in the order in which they were
// written. A line that is no record, or longer than any, comes as an error that names
// its number, with a zero Record, and the next line follows; the last line comes
// as [ErrTorn] if it was cut off, and as a record if only its newline is missing.
// Blank lines are passed over. An error of r ends the sequence. Unknown fields
// are ignored.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewReaderSize(r, window)
		var line []byte
		var end error
		for number := 1; end == nil; number++ {
			line, end = appendLine(line[:0], lines)
			if number == 1 { // some editors put it there
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			if len(bytes.TrimSpace(line)) == 0 && (end == nil || end == io.EOF) {
				continue
			}
			record, err := decode(line, end)
			if err != nil {
				err = fmt.Errorf("read results: line %d: %w", number, err)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// window is how much is read at once.
const window = 64 << 10

// appendLine appends the next line of r to line, up to its newline or, with
// io.EOF, up to the end. Of one that is too long only enough is kept to tell.
func appendLine(line []byte, r *bufio.Reader) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line) <= maxLine {
			if len(line) > 1<<20 { // once; what is not written to takes no memory
				line = slices.Grow(line, maxLine+window-len(line))
			}
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// decode reads one line. A line that ends with an error has no newline; with
// io.EOF it is the last, and may be torn.
func decode(line []byte, end error) (Record, error) {
	if end != nil && end != io.EOF {
		return Record{}, end
	}
	if len(line) > maxLine {
		return Record{}, fmt.Errorf("a line of over %d MiB: want a record", maxLine>>20)
	}
	var r Record
	err := json.Unmarshal(line, &r)
	switch {
	case err != nil && end == io.EOF && !jsontext.Value(line).IsValid():
		return Record{}, ErrTorn
	case err != nil:
		return Record{}, fmt.Errorf("want a record: %w", err)
	case r.V != version:
		return Record{}, fmt.Errorf("a record of version %d: want version %d", r.V, version)
	}
	return r, nil
}
