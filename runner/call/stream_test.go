//go:build unix

package call

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// What a command wrote is kept even if nobody came to read it in time and
// another process holds the pipe open.
func TestStreamHoldsAllThatWasWritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	text := strings.Repeat("line\n", 10000)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	s := &stream{&capture{keep: 1 << 20}, r, w, make(chan struct{})}
	if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	s.read()
	if string(s.kept) != text {
		t.Errorf("kept %d bytes, want %d", len(s.kept), len(text))
	}
}
