package cmd

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// voice is what a command says on standard error: lines for people, or one JSON
// object a line. It is safe for use by many goroutines.
type voice struct {
	*screen
	log   *slog.Logger // nil: lines for people
	quiet bool         // notes are left out
}

// newVoice returns a voice in one of the formats of --log-format.
func newVoice(out io.Writer, format string) *voice {
	v := &voice{screen: newScreen(out)}
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

// fail says an error, each of its lines by itself.
func (v *voice) fail(err error) {
	for line := range strings.Lines(err.Error()) {
		v.say(slog.LevelError, strings.TrimSuffix(line, "\n"))
	}
}
