package call

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
	"sync"
	"unicode/utf8"
)

// matchLimit is how much of a body or standard output expect.body_matches
// searches at least, in bytes; where more is kept anyway, that.
const matchLimit = 1 << 20

// buffers are what streams are read through: as much as a pipe holds.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// A capture is what is kept of a stream: its first bytes, its whole length and,
// if asked for, all of it in a file. Its memory is bounded by keep.
type capture struct {
	keep  int // bytes
	kept  []byte
	total int64

	save    *os.File  // a temporary one; nil: none
	saveErr error     // the first
	copy    io.Writer // nil: none
}

// newCapture returns a capture that keeps what is needed of a stream: what the
// record shows, what secrets may reach beyond that, and what is searched for a match.
func (t *attempt) newCapture(save *os.File, copy io.Writer) *capture {
	keep := int(t.Job.Output.Inline) + t.slack
	if t.Job.Expect.Body != nil {
		keep = max(keep, matchLimit)
	}
	return &capture{keep: keep, save: save, copy: copy}
}

// Write takes note of p. It never fails, so that a full disk does not stop the
// stream; commit tells of that.
func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	if room := c.keep - len(c.kept); room > 0 {
		c.kept = append(c.kept, p[:min(room, len(p))]...)
	}
	if c.save != nil && c.saveErr == nil {
		_, c.saveErr = c.save.Write(p)
	}
	if c.copy != nil {
		c.copy.Write(p)
	}
	return len(p), nil
}

// readAll reads r to its end.
func (c *capture) readAll(r io.Reader) error {
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	_, err := io.CopyBuffer(c, struct{ io.Reader }{r}, buf[:]) // a WriteTo would not use buf
	return err
}

// matches reports whether what is kept of c matches as the job expects.
func (t *attempt) matches(c *capture) bool {
	return t.Job.Expect.Body == nil || t.Job.Expect.Body.Match(c.kept)
}

// A shown is a stream as its record shows it.
type shown struct {
	text, encoding      string
	truncated, redacted bool
}

// show returns the first inline bytes, without secrets. Bytes that are not UTF-8
// come in base64; a cut within a character is moved before it.
func (c *capture) show(red *redactor, inline int64) shown {
	s := shown{truncated: c.total > inline}
	text := string(c.kept[:min(len(c.kept), int(inline)+red.slack)])
	text, s.redacted = red.body(text, int(inline))
	for cut := range min(utf8.UTFMax, len(text)+1) {
		if s.text = text[:len(text)-cut]; utf8.ValidString(s.text) {
			return s
		}
		if !s.truncated {
			break
		}
	}
	s.text, s.encoding = base64.StdEncoding.EncodeToString([]byte(text)), "base64"
	return s
}

// commit puts the file, if there is one, in its place, and returns that.
func (c *capture) commit(path string) (string, error) {
	if c.save == nil {
		return "", nil
	}
	err := errors.Join(c.saveErr, c.save.Close())
	if err == nil {
		err = os.Rename(c.save.Name(), path)
	}
	if err != nil {
		return "", fail(Broken, "file", "save output: %w", err)
	}
	return path, nil
}
