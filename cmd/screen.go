package cmd

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"agentlimit/runner"
)

const (
	redrawEvery = 100 * time.Millisecond
	plainEvery  = 10 * time.Second
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

// show begins to show what a run does, in a mode of --progress but auto. The
// result ends that, and returns when nothing more is shown.
func (s *screen) show(mode string, stats *runner.Stats, total int64) (hide func()) {
	draw, every := s.drawBar, redrawEvery
	switch mode {
	case "none":
		return func() {}
	case "plain":
		draw, every = s.drawLine, plainEvery
	}
	start := time.Now()
	ticker := time.NewTicker(every)
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-ticker.C:
				draw(stats.Summary(), total, time.Since(start))
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-gone
		s.set("")
	}
}

func (s *screen) drawBar(sum runner.Summary, total int64, since time.Duration) {
	// A full last column would move the cursor to the next line.
	s.set(barLine(sum, total, since, s.width()-1))
}

func (s *screen) drawLine(sum runner.Summary, total int64, since time.Duration) {
	io.WriteString(s, "agentlimit: "+strings.Join(progressParts(sum, total, since), ", ")+"\n")
}

// progressMode turns auto into what suits standard error. A bar needs a terminal.
func (p *program) progressMode(o *runOptions) string {
	switch mode := o.progress; {
	case o.quiet:
		return "none"
	case (mode == "auto" || mode == "bar") && !isTerminal(p.stderr):
		return "plain"
	case mode == "auto" && (os.Getenv("NO_COLOR") != "" || os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb"):
		return "plain"
	case mode == "auto" && o.output == "-" && isTerminal(p.stdout): // records and bar would mix
		return "plain"
	case mode == "auto":
		return "bar"
	default:
		return mode
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
