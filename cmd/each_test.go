package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"agentlimit/cmd"
)

// eachLine runs each over lines.
func eachLine(t *testing.T, lines string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a shell")
	}
	var out, errs bytes.Buffer
	code = cmd.Run(context.Background(), append([]string{"each"}, args...), strings.NewReader(lines), &out, &errs)
	return out.String(), errs.String(), code
}

// TestEachKeepsLongOutputsWhole has calls side by side write more than is kept in
// memory, in pieces: each comes out whole, in its order.
func TestEachKeepsLongOutputsWhole(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var lines, want strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, "%02d\n", i)
		want.WriteString(strings.Repeat(fmt.Sprintf("%02d.", i), 100_000) + "\n")
	}
	stdout, stderr, code := eachLine(t, lines.String(), "-k", "-j8", "--", "sh", "-c", `yes "$1." | head -n 100000 | tr -d '\n'; echo`, "_")
	if code != 0 || stderr != "" || stdout != want.String() {
		t.Errorf("exit code %d, stderr %q, %d bytes of output, want %d", code, stderr, len(stdout), want.Len())
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestEachPrintsTheLastAttempt leaves out what attempts wrote that were repeated.
func TestEachPrintsTheLastAttempt(t *testing.T) {
	stdout, _, code := eachLine(t, "x\n", "--", "sh", "-c", `echo "attempt $AGENTLIMIT_JOB_ATTEMPT"; [ $AGENTLIMIT_JOB_ATTEMPT = 2 ] || exit 75`)
	if stdout != "attempt 2\n" || code != 0 {
		t.Errorf("printed %q, exit code %d", stdout, code)
	}
	stdout, _, code = eachLine(t, "x\n", "--attempts", "3", "--", "sh", "-c", `echo "attempt $AGENTLIMIT_JOB_ATTEMPT"; [ $AGENTLIMIT_JOB_ATTEMPT = 3 ]`)
	if stdout != "attempt 3\n" || code != 0 {
		t.Errorf("with attempts asked for: printed %q, exit code %d", stdout, code)
	}
}

// TestEachOrderWithGaps keeps the order when lines are left out, are bad or cannot
// start in time.
func TestEachOrderWithGaps(t *testing.T) {
	results := t.TempDir() + "/r.jsonl"
	eachLine(t, "b\n", "-o", results, "--", "echo")
	stdout, _, code := eachLine(t, "a\nb\nc\xff\nd\n", "-k", "-o", results, "--resume", "--", "echo")
	if stdout != "a\nd\n" || code != 1 {
		t.Errorf("printed %q, exit code %d", stdout, code)
	}
	stdout, _, code = eachLine(t, "a\nb\nc\n", "-k", "--rate", "1/h", "--burst", "2", "--deadline", "2s", "--", "echo")
	if stdout != "a\nb\n" || code != 75 {
		t.Errorf("printed %q, exit code %d", stdout, code)
	}
}

// TestEachTakesAnyBytes has names that are no text, as old file systems hold them, end in
// NUL; two that are told apart by such bytes alone are two calls, to --resume too.
func TestEachTakesAnyBytes(t *testing.T) {
	results := t.TempDir() + "/r.jsonl"
	stdout, stderr, code := eachLine(t, "a\xffb\x00\r\n\x00", "-0", "-k", "-o", results, "--", "printf", "<%s>")
	if stdout != "<a\xffb><\r\n>" || code != 0 {
		t.Errorf("printed %q, exit code %d: %s", stdout, code, stderr)
	}
	stdout, stderr, code = eachLine(t, "a\xfeb\x00a\xffb\x00", "-0", "-k", "-o", results, "--resume", "--", "printf", "<%s>")
	if stdout != "<a\xfeb>" || code != 0 {
		t.Errorf("then printed %q, exit code %d: %s", stdout, code, stderr)
	}
	stdout, stderr, code = eachLine(t, "b\x00a\xff\x00", "-0", "--account", "{}", "--", "printf", "<%s>")
	if stdout != "<b>" || code != 1 || !strings.Contains(stderr, `<stdin>:2: command line: jobs[0].account: "${item:line}": want UTF-8`) {
		t.Errorf("with such an account printed %q, exit code %d: %s", stdout, code, stderr)
	}
	stdout, _, _ = eachLine(t, "a\r\nb\n", "-k", "--", "printf", "<%s>")
	if stdout != "<a><b>" {
		t.Errorf("of lines from another system: printed %q", stdout)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// TestEachStopsWhenNobodyReads ends a run whose output goes nowhere.
func TestEachStopsWhenNobodyReads(t *testing.T) {
	var errs bytes.Buffer
	lines := strings.Repeat("x\n", 10_000)
	code := cmd.Run(context.Background(), []string{"each", "echo"}, strings.NewReader(lines), brokenPipe{}, &errs)
	if code != 3 || !strings.Contains(errs.String(), "write to standard output: nobody reads") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}
