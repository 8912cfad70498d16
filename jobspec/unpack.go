package jobspec

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd file asks for, in bytes. zstd itself takes
// no more, if it is not told to.
const maxWindow = 128 << 20

// packings are how a file may be compressed, by its first bytes, which no text has.
var packings = []struct {
	name, magic string
	open        func(*bufio.Reader) (io.Reader, error)
}{
	{"gzip", "\x1f\x8b", func(r *bufio.Reader) (io.Reader, error) {
		first, err := gzip.NewReader(r)
		return &members{first, r}, err
	}},
	{"zstd", "\x28\xb5\x2f\xfd", openZstd},
	{"zstd", "\x50\x2a\x4d\x18", openZstd}, // with a frame to be skipped in front, as pzstd writes it
}

func openZstd(r *bufio.Reader) (io.Reader, error) {
	// With one thread it works within Read, so there is nothing to close.
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// PackedName reports whether a name ends as those of compressed files do, in .gz or
// .zst, and returns what stands in front of that.
func PackedName(name string) (inner string, packed bool) {
	switch ext := filepath.Ext(name); strings.ToLower(ext) {
	case ".gz", ".zst":
		return name[:len(name)-len(ext)], true
	}
	return name, false
}

// Unpack returns what r holds, decompressed if its first bytes are those of gzip or
// zstd, while it is read. It reads nothing before, and of the first bytes no more
// than it takes to know.
func Unpack(r io.Reader) io.Reader { return newUnpacker(r) }

func newUnpacker(r io.Reader) *unpacker { return &unpacker{in: bufio.NewReader(r)} }

type unpacker struct {
	in   *bufio.Reader
	out  io.Reader // nil: nothing was read yet
	name string    // of the packing; empty: none
	err  error     // of what begins it
}

// Read reads.
func (u *unpacker) Read(p []byte) (n int, err error) {
	if u.begin(); u.err == nil {
		n, u.err = u.out.Read(p)
	}
	if u.err == nil || u.err == io.EOF || u.name == "" {
		return n, u.err
	}
	return n, fmt.Errorf("unpack %s: %w", u.name, u.err)
}

// begin finds out what is read. A pipe may bring its first bytes one by one, and a
// line of two bytes must not wait for what follows.
func (u *unpacker) begin() {
	if u.out != nil {
		return
	}
	u.out = u.in
	for _, p := range packings {
		for n := 1; n <= len(p.magic); n++ {
			if head, _ := u.in.Peek(n); string(head) != p.magic[:n] { // an error is met again
				break
			} else if n == len(p.magic) {
				u.name = p.name
				u.out, u.err = p.open(u.in)
				return
			}
		}
	}
}

// members reads what the members of a gzip file hold, behind which may be zeros: tapes and
// block devices fill their last block with them.
type members struct {
	*gzip.Reader
	in *bufio.Reader // of which the reader takes no more than its member
}

// Read reads.
func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		m.Multistream(false)
		if n, err = m.Reader.Read(p); err == io.EOF {
			err = m.next()
		}
	}
	return n, err
}

// next goes on to the next member. At the end it returns io.EOF.
func (m *members) next() error {
	head, err := m.in.Peek(1)
	if err == nil && head[0] != 0 {
		return m.Reset(m.in)
	}
	for err == nil && head[0] == 0 {
		m.in.Discard(1) // which is there
		head, err = m.in.Peek(1)
	}
	if err == nil {
		err = gzip.ErrHeader
	}
	return err
}

// spool makes r read a compressed file. Jobs are not taken up in the order of the
// file, which cannot be found again in one that is compressed: so what the first
// reading brings is kept in a file without a name, mode 0600.
func (s *source) spool(r *records) error {
	kept, err := os.CreateTemp("", "agentlimit-*")
	if err != nil {
		return fmt.Errorf("unpack %q: %w", r.file.name, err)
	}
	if os.Remove(kept.Name()) != nil { // some systems cannot while it is open
		s.left = append(s.left, kept.Name())
	}
	s.opened = append(s.opened, kept)
	r.in, r.disk = io.TeeReader(r.in, kept), kept
	return nil
}
