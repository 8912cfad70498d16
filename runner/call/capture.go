package call

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"
)

// matchLimit is how much of a body or standard output expect.body_matches
// searches, in bytes, if not more of it is kept anyway.
const matchLimit = 1 << 20

// buffers are what streams are read through: as much as a pipe holds.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// A capture is what is kept of a stream: its first bytes, its whole length and,
// if asked for, all of it in a file. Its memory is bounded by keep.
type capture struct {
	keep  int // bytes
	kept  []byte
	total int64
	save  *saving // nil: none
}

// Write takes note of p. It never fails, so that a full disk does not stop the
// stream; [saving] remembers that.
func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	if room := c.keep - len(c.kept); room > 0 {
		c.kept = append(c.kept, p[:min(room, len(p))]...)
	}
	c.save.write(p)
	return len(p), nil
}

// readAll reads r to its end.
func (c *capture) readAll(r io.Reader) error {
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := r.Read(buf[:])
		c.Write(buf[:n])
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// A shown is a stream as its record shows it.
type shown struct {
	text, encoding      string
	truncated, redacted bool
}

// show returns the first inline bytes, without secrets. Bytes that are not UTF-8
// come in base64; a cut within a character is moved before it.
func (c *capture) show(red *redactor, inline int64) shown {
	b, redacted := red.body(c.kept, int(min(inline, int64(len(c.kept)))))
	s := shown{truncated: c.total > inline, redacted: redacted}
	if s.truncated {
		b = b[:len(b)-partialRune(b)]
	}
	if utf8.Valid(b) {
		s.text = string(b)
	} else {
		s.text, s.encoding = base64.StdEncoding.EncodeToString(b), "base64"
	}
	return s
}

// partialRune returns how many bytes at the end of b begin a character without
// ending it.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

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
		if isShortage(err) {
			return nil, shortage(err)
		}
		return nil, fail(Broken, "file", "save output: %w", err)
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
		return "", &failure{Broken, "file", fmt.Errorf("save output: %w", s.err)}
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
