//go:build unix

package cmd_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStoppedWhileFilesAreChecked stops a run that still reads its jobs: it says so,
// and writes the summary of a run in which nothing ran.
func TestStoppedWhileFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	var said strings.Builder
	c := exec.Command("agentlimit", "run", "-", "-o", "out.jsonl", "--summary", "summary.json")
	c.Dir, c.Stderr = dir, &said
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: it is written when the run has begun to read.
	if _, err := in.Write([]byte(strings.Repeat("# jobs to come\n", 1<<14))); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // its exit code is looked at
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	lines := strings.Split(said.String(), "\n")
	if len(lines) != 3 || lines[0] != "agentlimit: stopping" || !strings.HasPrefix(lines[1], "agentlimit: no job ended in ") {
		t.Errorf("it said\n%s", &said)
	}
	var summary struct {
		Code int   `json:"exit_code"`
		Jobs int64 `json:"jobs"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &summary)
	}
	if err != nil || summary.Code != 130 || summary.Jobs != 0 {
		t.Errorf("the summary: %s, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out.jsonl")); err == nil {
		t.Error("there are results of a run that did not begin")
	}
}

// TestStoppedWhileNobodyReads stops a run whose results go to a pipe that has no
// reader.
func TestStoppedWhileNobodyReads(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("agentlimit", "run", "-", "-o", pipe)
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: the run has begun when it is written, and nothing but the
	// pipe holds it up when that is all.
	_, err = in.Write([]byte(strings.Repeat("# no jobs\n", 1<<14) + "jobs: []\n"))
	if err := errors.Join(err, in.Close(), c.Process.Signal(syscall.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, c); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}
