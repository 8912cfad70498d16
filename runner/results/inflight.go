package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Inflight is the list, beside a results file, of jobs whose fate would be
// unknown if the run were killed now: those that are not safe to repeat, from
// just before their first byte is sent. It survives the death of the process,
// not that of the machine. It is safe for use by many goroutines.
type Inflight struct {
	path string

	mu   sync.Mutex // guards what follows
	file *os.File   // nil: nothing to list yet
	err  error      // the first; a line may be cut off in the middle, so nothing follows it
}

// Sent is one line of the list.
type Sent struct {
	Run  string `json:"run"`
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Hash string `json:"hash"`
}

// NewInflight returns the list beside the results file at path. The file is made
// when there is something to list.
func NewInflight(path string) *Inflight { return &Inflight{path: path + ".inflight"} }

// Add lists a job. It must return before the job is sent. After an error nothing
// more can be listed, and every further call returns that first error.
func (f *Inflight) Add(s Sent) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = f.appendLocked(append(line, '\n'))
	}
	return f.err
}

func (f *Inflight) appendLocked(line []byte) (err error) {
	if f.file == nil {
		f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	if err == nil {
		_, err = f.file.Write(line)
	}
	if err != nil {
		return fmt.Errorf("list what is under way: %w", err)
	}
	return nil
}

// Read returns what a run that did not end cleanly left on the list. A last line
// that was cut off stands for nothing: its job was not sent.
func (f *Inflight) Read() ([]Sent, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was under way: %w", err)
	}
	defer file.Close()
	var all []Sent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s Sent
		if json.Unmarshal(lines.Bytes(), &s) == nil && s.ID != "" {
			all = append(all, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read what was under way: %w", err)
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
