package cmd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComplete asks as a shell does. Behind the words there is a number: 0 wants
// files, 2 no space behind a word, 4 no files, 8 files with these endings, 16 folders.
func TestComplete(t *testing.T) {
	const jobFiles = "yaml yml json jsonl ndjson :8"
	for _, test := range []struct{ what, args, want string }{
		{"a flag with fixed values", "run --progress _", "auto bar plain none :4"},
		{"the same in one word", "run --log-format=", "text json :4"},
		{"a flag that two commands have", "validate --format _", "yaml json jsonl openai-batch vegeta :4"},
		{"the same flag of a command where it is another", "plan --format _", "text json html :4"},
		{"a flag that names results", "plan --from _", ":0"},
		{"a flag whose values begin with a word", "run --only _", "id= host= account= :6"},
		{"a flag that names a file", "run --summary _", ":0"},
		{"its short name", "run -o _", ":0"},
		{"a flag with a number", "run --queue _", ":4"},
		{"a flag with whatever comes", "run --var _", ":4"},
		{"job files", "run _", jobFiles},
		{"more of them, behind a flag without a value", "run a.yaml --resume _", jobFiles},
		{"what to do without a coordinator", "each --coordinator-lost _", "wait stop cancel :4"},
		{"shells", "completion _", "bash zsh fish powershell :4"},
		{"the formats of report", "report --format _", "table json csv markdown junit html openai-batch :4"},
		{"results files", "audit _", "jsonl :8"},
		{"the job files of audit", "audit --jobs _", ":0"},
		{"a folder for a new file", "init _", ":16"},
		{"nothing behind it", "init jobs.yaml _", ":4"},
		{"a folder for pages", "man _", ":16"},
		{"a command without arguments", "schema _", ":4"},
		{"another", "version _", ":4"},
		{"a word that is no command", "polish _", ":4"},
	} {
		args := append([]string{"__complete"}, strings.Fields(test.args)...)
		if last := len(args) - 1; args[last] == "_" {
			args[last] = ""
		}
		_, stdout, _ := run(t.Context(), "", args...)
		if diff := cmp.Diff(test.want, strings.Join(strings.Fields(stdout), " ")); diff != "" {
			t.Errorf("%s: agentlimit %q (-want +got):\n%s", test.what, args, diff)
		}
	}
}
