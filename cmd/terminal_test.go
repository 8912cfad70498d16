//go:build unix

package cmd_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"agentlimit/runner/results"
)

const (
	ctrlC = "\x03"
	// holdJobs are more than can be under way at once; each touches a file of its
	// name when it starts.
	holdJobs = `
limits: {hosts: {h: {concurrency: 3}}}
defaults: {host: h}
x-call: &call {shell: 'touch "$AGENTLIMIT_JOB_ID.started"; sleep %s'}
jobs:
- {id: a, exec: *call}
- {id: b, exec: *call}
- {id: c, exec: *call}
- {id: d, exec: *call}
- {id: e, exec: *call}
`
)

// terminal is an agentlimit that runs in a terminal of its own.
type terminal struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	tty  *os.File
	seen chan string // what it shows, in pieces
	text string      // all of it so far
}

// inTerminal starts agentlimit in a terminal, in a folder with job file jobs.
func inTerminal(t *testing.T, columns uint16, jobs string, args ...string) *terminal {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("agentlimit", append([]string{"run", "jobs.yaml"}, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "TERM=xterm", "CI=", "NO_COLOR=", "TMPDIR="+dir)
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, dir: dir, cmd: c, tty: tty, seen: make(chan string)}
	t.Cleanup(func() {
		c.Process.Kill()
		tty.Close()
	})
	go func() {
		defer close(term.seen)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			if n > 0 {
				term.seen <- string(buf[:n])
			}
			if err != nil { // EIO: the other side is closed
				return
			}
		}
	}()
	return term
}

// await reads until the terminal has shown something that matches.
func (term *terminal) await(pattern string) {
	term.t.Helper()
	want := regexp.MustCompile(pattern)
	timeout := time.After(testTimeout)
	for !want.MatchString(term.text) {
		select {
		case piece, open := <-term.seen:
			if !open {
				term.t.Fatalf("the terminal did not show %q but\n%s", pattern, term.text)
			}
			term.text += piece
		case <-timeout:
			term.t.Fatalf("the terminal has not shown %q but\n%s", pattern, term.text)
		}
	}
}

// awaitStarted waits until the jobs have started.
func (term *terminal) awaitStarted(ids ...string) {
	term.t.Helper()
	for _, id := range ids {
		awaitFile(term.t, filepath.Join(term.dir, id+".started"))
	}
}

// awaitFile waits for a file in a process of its own.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	wait := `i=0; until [ -e "$0" ]; do sleep 0.02; i=$((i+1)); [ $i -lt 1000 ] || exit 1; done`
	if err := exec.Command("/bin/sh", "-c", wait, path).Run(); err != nil {
		t.Fatalf("wait for %s: %v", path, err)
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := io.WriteString(term.tty, keys); err != nil {
		term.t.Fatal(err)
	}
}

// exit returns the exit code when the process has ended.
func (term *terminal) exit() int {
	for piece := range term.seen {
		term.text += piece
	}
	return exitCodeOf(term.t, term.cmd)
}

// exitCodeOf waits for a process and returns its exit code.
func exitCodeOf(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	err := c.Wait()
	exit, found := errors.AsType[*exec.ExitError](err)
	switch {
	case found:
		return exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return 0
}

// statuses returns how the jobs of a results file ended; every line must be whole.
func statuses(t *testing.T, path string) map[string]results.Status {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[string]results.Status)
	for r, err := range results.Read(bufio.NewReader(f)) {
		if err != nil {
			t.Errorf("read %s: %v", path, err)
		}
		if _, doubled := all[r.ID]; doubled {
			t.Errorf("job %q has two records", r.ID)
		}
		all[r.ID] = r.Status
	}
	return all
}

func wantStatuses(t *testing.T, dir string, want string) {
	t.Helper()
	got := fmt.Sprint(statuses(t, filepath.Join(dir, "jobs.results.jsonl")))
	if got != want {
		t.Errorf("the jobs ended as %v, want %v", got, want)
	}
}

func TestCtrlCOnceLetsJobsEnd(t *testing.T) {
	t.Parallel()
	term := inTerminal(t, 80, fmt.Sprintf(holdJobs, "1"))
	term.awaitStarted("a", "b", "c")
	term.press(ctrlC)
	term.await(`agentlimit: stopping: 3 under way may end within 8s; again to end them at once\r\n`)
	if code := term.exit(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	term.await(`agentlimit: 3 succeeded, 2 not started in `)
	wantStatuses(t, term.dir, "map[a:succeeded b:succeeded c:succeeded]")
}

func TestCtrlCTwiceEndsJobs(t *testing.T) {
	t.Parallel()
	term := inTerminal(t, 80, fmt.Sprintf(holdJobs, "30"))
	term.awaitStarted("a", "b", "c")
	term.press(ctrlC)
	term.await(`stopping: 3 under way`)
	time.Sleep(200 * time.Millisecond) // sooner, it would be an echo of the first
	again := time.Now()
	term.press(ctrlC)
	if code := term.exit(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if took := time.Since(again); took > 2*time.Second {
		t.Errorf("the end came %v after the second Ctrl-C", took)
	}
	wantStatuses(t, term.dir, "map[a:interrupted b:interrupted c:interrupted]")
}

func TestGraceRunsOut(t *testing.T) {
	t.Parallel()
	term := inTerminal(t, 80, fmt.Sprintf(holdJobs, "30"), "--grace", "500ms")
	term.awaitStarted("a", "b", "c")
	term.press(ctrlC)
	if code := term.exit(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	wantStatuses(t, term.dir, "map[a:interrupted b:interrupted c:interrupted]")
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script string // that ends as agentlimit does
		signal syscall.Signal
		want   int
	}{
		{"SIGTERM stops", `exec agentlimit run jobs.yaml`, syscall.SIGTERM, 143},
		{"SIGINT stops", `exec agentlimit run jobs.yaml`, syscall.SIGINT, 130},
		{"SIGHUP stops", `exec agentlimit run jobs.yaml`, syscall.SIGHUP, 129},
		{"SIGHUP does nothing if it was ignored at the start", `trap "" HUP; exec agentlimit run jobs.yaml`, syscall.SIGHUP, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			jobs := fmt.Sprintf(holdJobs, "1")
			if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(jobs), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("/bin/sh", "-c", test.script)
			c.Dir = dir
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			awaitFile(t, filepath.Join(dir, "c.started"))
			c.Process.Signal(test.signal)
			if code := exitCodeOf(t, c); code != test.want {
				t.Errorf("%s, then %v: exit code %d, want %d", test.script, test.signal, code, test.want)
			}
			if n := len(statuses(t, filepath.Join(dir, "jobs.results.jsonl"))); n != 3 && test.want > 0 || n != 5 && test.want == 0 {
				t.Errorf("%s, then %v: %d records", test.script, test.signal, n)
			}
		})
	}
}

// Commands have no part in the terminal: one that reads gets nothing at once.
func TestTerminalIsNoInputOfJobs(t *testing.T) {
	t.Parallel()
	term := inTerminal(t, 80, `jobs: [{id: a, exec: {argv: [cat]}}, {id: b, exec: {shell: "cat </dev/tty"}}]`)
	if code := term.exit(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	wantStatuses(t, term.dir, "map[a:succeeded b:failed]")
}

// A stream that says nothing must not keep a stopped run from ending.
func TestStopsWhileStandardInputIsSilent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := exec.Command("agentlimit", "run", "--format", "jsonl", "-", "-o", "out.jsonl")
	c.Dir = dir
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	fmt.Fprintln(in, `{"id":"a","exec":{"shell":"touch started"}}`)
	awaitFile(t, filepath.Join(dir, "started"))
	c.Process.Signal(syscall.SIGTERM)
	done := make(chan int, 1)
	go func() { done <- exitCodeOf(t, c) }()
	select {
	case code := <-done:
		if code != 143 {
			t.Errorf("exit code %d, want 143", code)
		}
	case <-time.After(testTimeout):
		t.Errorf("it has not ended %v after SIGTERM", testTimeout)
	}
}

func TestBarFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []uint16{80, 40} {
		term := inTerminal(t, width, fmt.Sprintf(holdJobs, "0.5"))
		term.await(`\d% \|.*0/5, 3/3 on host/h`)
		if code := term.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		bars, _, _ := strings.Cut(term.text, "agentlimit: ")
		for line := range strings.SplitSeq(bars, "\r") {
			line = strings.TrimSuffix(line, "\x1b[K")
			if n := len([]rune(line)); n >= int(width) {
				t.Errorf("a line of %d columns in a terminal of %d: %q", n, width, line)
			}
		}
		if !strings.Contains(bars, "\r\x1b[K") {
			t.Errorf("the bar is still there at the end: %q", bars)
		}
	}
}
