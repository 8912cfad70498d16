package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Inflight is the list, beside a results file, of the records that jobs get if the run
// is killed now: those that are not safe to repeat, from just before their first byte
// is sent. It survives the death of the process, not that of the machine. It is safe
// for use by many goroutines.
type Inflight struct {
	path string

	mu   sync.Mutex // guards what follows
	file *os.File   // nil: nothing to list yet
	list *Writer
}

// NewInflight returns the list beside the results file at path. The file is made
// when there is something to list.
func NewInflight(path string) *Inflight { return &Inflight{path: path + ".inflight"} }

// Add lists a job. It must return before the job is sent. After a line that could not
// be written nothing more can be listed, and every further call returns that error.
func (f *Inflight) Add(r *Record) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		if f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return fmt.Errorf("list what is under way: %w", err)
		}
		f.list = NewWriter(f.file)
	}
	if err := f.list.Append(r); err != nil {
		return fmt.Errorf("list what is under way: %w", errors.Unwrap(err))
	}
	return nil
}

// Read returns what a run that did not end cleanly left on the list. A last line
// that was cut off stands for nothing: its job was not sent.
func (f *Inflight) Read() (all []Record, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was under way: %w", err)
	}
	defer file.Close()
	for r, err := range Read(file) {
		switch {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, ErrTorn):
			return nil, fmt.Errorf("read what was under way: %w", err)
		}
	}
	return all, nil
}

// Clear removes the list: every job on it has a record.
func (f *Inflight) Clear() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.file.Close() // nothing that it held matters any more
		f.file = nil
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the list of what was under way: %w", err)
	}
	return nil
}
