package cmd_test

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsATerminal wants the help of each command to need no more than the 80
// columns that any terminal has.
func TestHelpFitsATerminal(t *testing.T) {
	for _, name := range append(helpNames(t, `(?m)^  ([a-z]+)  +[A-Z]`, "--help"), "") {
		_, stdout, _ := run(t.Context(), "", append(strings.Fields(name), "--help")...)
		for line := range strings.Lines(stdout) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("agentlimit %s --help has a line of %d characters:\n%s", name, n, line)
			}
		}
	}
}
