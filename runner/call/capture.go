package call

import (
	"encoding/base64"
	"io"
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

// keep returns how many bytes of a stream are needed: what the record shows,
// what secrets may reach beyond that, and what is searched for a match.
func (t *attempt) keep() int {
	n := int(t.Job.Output.Inline) + t.slack()
	if t.Job.Expect.Body != nil {
		n = max(n, matchLimit)
	}
	return n
}

// matches searches the first [matchLimit] bytes, or all that is shown if more.
func (t *attempt) matches(c *capture) bool {
	if t.Job.Expect.Body == nil {
		return true
	}
	limit := max(matchLimit, int(t.Job.Output.Inline))
	return t.Job.Expect.Body.Match(c.kept[:min(limit, len(c.kept))])
}
