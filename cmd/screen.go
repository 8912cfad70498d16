package cmd

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// screen is standard error while a run goes on: lines of text and, on a terminal,
// a status line below them. It is safe for use by many goroutines.
type screen struct {
	width func() int // of the terminal

	mu     sync.Mutex // guards what follows
	out    io.Writer
	status string // that is shown; empty: none
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, width: func() int { return terminalWidth(out) }}
}

// Write writes whole lines above the status line.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	s.setLocked("")
	n, err := s.out.Write(p)
	s.setLocked(status)
	return n, err
}

func (s *screen) set(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(status)
}

// setLocked replaces the status line. The cursor stays at its start, so that the
// ^C that a terminal shows is overwritten by what is drawn next.
func (s *screen) setLocked(status string) {
	if status != s.status {
		io.WriteString(s.out, "\r"+status+"\x1b[K\r")
		s.status = status
	}
}

func isTerminal(stream io.Writer) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the width of a terminal in columns, and 80 if it does not
// tell.
func terminalWidth(stream io.Writer) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return lineWidth
}
