package results

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counting is a stream that takes room bytes, and then no more.
type counting struct {
	bytes.Buffer
	writes, room int
	err          error
}

func (c *counting) Write(p []byte) (int, error) {
	c.writes++
	n, _ := c.Buffer.Write(p[:min(len(p), c.room-c.Len())])
	if n < len(p) {
		return n, c.err
	}
	return n, nil
}

func TestAppendIsOneWrite(t *testing.T) {
	out := &counting{room: 1 << 20}
	w := NewWriter(out)
	if err := w.Append(&Record{ID: "a"}, &Record{ID: "b"}, &Record{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(); err != nil {
		t.Fatal(err)
	}
	if out.writes != 1 {
		t.Errorf("Append of three records, then of none: %d writes, want 1", out.writes)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, lines(&out.Buffer)); diff != "" {
		t.Errorf("the stream holds (-want +got):\n%s", diff)
	}
}

func TestTheFirstErrorStays(t *testing.T) {
	full := errors.New("no space left on device")
	tests := []struct {
		name      string
		err, want error
	}{
		{"the stream says why", full, full},
		{"the stream takes a part and says nothing", nil, io.ErrShortWrite},
	}
	for _, tt := range tests {
		out := &counting{room: 10, err: tt.err}
		w := NewWriter(out)
		first := w.Append(&Record{ID: "a"})
		if !errors.Is(first, tt.want) {
			t.Errorf("%s: Append = %v, want %v", tt.name, first, tt.want)
		}
		out.room = 1 << 20
		if second := w.Append(&Record{ID: "b"}); second != first || out.writes != 1 {
			t.Errorf("%s: the next Append = %v after %d writes, want the first error and no write", tt.name, second, out.writes)
		}
	}
}
