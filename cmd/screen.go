package cmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen is standard error while a run goes on: lines of text and, on a terminal,
// a status line below them. It is safe for use by many goroutines.
type screen struct {
	width func() int // of the terminal, in columns

	mu     sync.Mutex // guards what follows
	out    io.Writer
	status string // that is shown; empty: none
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

// handle returns the file handle of a stream, -1 if it has none.
func handle(stream any) int {
	if f, ok := stream.(*os.File); ok {
		return int(f.Fd())
	}
	return -1
}

// voice is what a command says on its screen: lines for people, or one JSON object
// a line. It is safe for use by many goroutines.
type voice struct {
	*screen
	log   *slog.Logger // nil: lines for people
	quiet bool         // notes are left out
}

// newVoice returns a voice in one of the formats of --log-format.
func newVoice(out io.Writer, format string) *voice {
	v := &voice{screen: &screen{out: out, width: func() int {
		width, _, _ := term.GetSize(handle(out))
		return cmp.Or(max(width, 0), lineWidth)
	}}}
	if format == "json" {
		v.log = slog.New(slog.NewJSONHandler(v.screen, nil))
	}
	return v
}

// leads is how lines for people begin, behind the program's name.
var leads = map[slog.Level]string{slog.LevelError: "error: ", slog.LevelWarn: "warning: "}

// say says a text of one line. The fields are for JSON only, as [slog.Logger.Log]
// takes them: what a program wants to know without reading the text.
func (v *voice) say(level slog.Level, text string, fields ...any) {
	text = printable(text)
	v.tell(level, text, "agentlimit: "+leads[level]+text+"\n", fields...)
}

// note says what may be left unsaid.
func (v *voice) note(level slog.Level, text string, fields ...any) {
	if !v.quiet {
		v.say(level, text, fields...)
	}
}

// hint says what may help.
func (v *voice) hint(text string) { v.say(slog.LevelInfo, "hint: "+text) }

// tell says one thing, in lines of their own for people.
func (v *voice) tell(level slog.Level, text, lines string, fields ...any) {
	if v.log != nil {
		v.log.Log(context.Background(), level, text, fields...)
		return
	}
	io.WriteString(v.screen, lines)
}

// fail says an error, each of its lines by itself, and the way out if there is one.
func (v *voice) fail(err error) {
	for line := range strings.Lines(err.Error()) {
		v.say(slog.LevelError, strings.TrimSuffix(line, "\n"))
	}
	if h, found := errors.AsType[*hinted](err); found {
		v.hint(h.hint)
	}
}
