package call

import (
	"os"
	"path/filepath"
)

// A saving is a file that appears whole, or not at all, when it is committed.
// It is written beside its place, so a process that is killed may leave a
// hidden temporary file, but never half of the real one. A nil saving does
// nothing.
type saving struct {
	path string
	f    *os.File
	err  error // the first
}

// newSaving makes sure that path can be written to, before anything is sent.
func newSaving(path string) (*saving, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return nil, fileFailure("save output", err)
	}
	return &saving{path: path, f: f}, nil
}

func (s *saving) write(p []byte) {
	if s != nil && s.err == nil {
		_, s.err = s.f.Write(p)
	}
}

// commit puts the file in its place and returns its path, empty if there is
// nothing to save.
func (s *saving) commit() (string, error) {
	if s == nil {
		return "", nil
	}
	if err := s.f.Close(); s.err == nil {
		s.err = err
	}
	if s.err == nil {
		s.err = os.Rename(s.f.Name(), s.path)
	}
	if s.err != nil {
		return "", fail(Broken, "file", "save output: %w", s.err)
	}
	return s.path, nil
}

// discard removes what was not committed.
func (s *saving) discard() {
	if s != nil {
		s.f.Close()
		os.Remove(s.f.Name())
	}
}
