package results

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
)

// tail is the end of a results file. Only the holder of the file's lock has one.
type tail struct {
	file *os.File
	end  int64 // behind the last whole line; the next is written there
	// empty is called before the first write; nil: what is there stays.
	empty func() error
}

// Write appends whole lines. If the disk takes only a part of them, what it
// took of a line is taken away again, if that is possible: else the next [Open]
// does it. Nothing may be written after an error.
func (t *tail) Write(lines []byte) (int, error) {
	if t.empty != nil {
		if err := t.empty(); err != nil {
			return 0, err
		}
	}
	n, err := t.file.Write(lines)
	if err != nil {
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
		err = errors.Join(err, t.file.Truncate(t.end+int64(n)))
	}
	t.end += int64(n)
	return n, err
}

// mend finds the end of a file of the given size, sets its last line right, and
// returns how many bytes it cut off. What is not a results file is not touched.
func (t *tail) mend(size int64) (torn int64, err error) {
	if begins, err := t.beginsWithRecord(); err != nil || !begins {
		return 0, cmp.Or(err, errors.New("holds something else than results"))
	}
	if t.end, err = t.lastLine(size); err != nil || t.end == size {
		return 0, err
	}
	last := make([]byte, min(size-t.end, maxLine))
	if _, err := t.file.ReadAt(last, t.end); err != nil {
		return 0, err
	}
	if jsontext.Value(last).IsValid() {
		t.end = size + 1
		_, err := t.file.WriteAt([]byte("\n"), size)
		return 0, err
	}
	return size - t.end, t.file.Truncate(t.end)
}

// beginsWithRecord reports whether the file begins as each record does, as far
// as it goes: it may hold blank lines only, or a single torn one.
func (t *tail) beginsWithRecord() (bool, error) {
	head := make([]byte, 64)
	n, err := t.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	head = bytes.TrimLeft(head[:n], "\r\n")
	return bytes.HasPrefix(head, []byte(recordStart)) || bytes.HasPrefix([]byte(recordStart), head), nil
}

// lastLine returns where what follows the last newline of a file of the given size
// begins.
func (t *tail) lastLine(size int64) (int64, error) {
	chunk := make([]byte, window)
	for at := size; at > 0; {
		chunk = chunk[:min(window, at)]
		at -= int64(len(chunk))
		if _, err := t.file.ReadAt(chunk, at); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
	}
	return 0, nil
}
