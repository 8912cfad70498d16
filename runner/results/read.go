package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// version is the only one there is so far; what begins every record names it.
const (
	version     = 1
	recordStart = `{"v":1,`
)

// ErrTorn is the error of a last line that a crash cut off in the middle.
var ErrTorn = errors.New("cut off in the middle")

// Read returns the records of a results file in the order in which they were
// written. A line of any length that is no record comes as an error that names
// its number, with a zero Record, and the next line follows; the last line comes
// as [ErrTorn] if it was cut off, and as a record if only its newline is missing.
// Blank lines are passed over. An error of r ends the sequence. Unknown fields
// are ignored.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		var end error
		for number := 1; end == nil; number++ {
			line, end = appendLine(line[:0], lines)
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

// appendLine appends the next line of r to line, up to its newline or, with
// io.EOF, up to the end.
func appendLine(line []byte, r *bufio.Reader) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
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
