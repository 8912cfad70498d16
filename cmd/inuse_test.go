//go:build unix

package cmd_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentlimit/runner/results"
)

// Two runs on one results file, as when cron starts one too soon: the second ends
// at once and changes nothing. So it is after the first was killed.
func TestTwoRunsOnOneFile(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789"), 20_000)
	came, answer := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-answer:
			w.Write(body)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	var jobs bytes.Buffer
	fmt.Fprintf(&jobs, "limits: {hosts: {\"*\": {concurrency: 4}}}\ndefaults: {output: {inline: 1MiB}}\njobs:\n")
	for i := range 50 {
		fmt.Fprintf(&jobs, "- {id: job-%d, http: {url: %q}}\n", i, server.URL)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), jobs.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		c := exec.Command("agentlimit", "run", "--resume", "jobs.yaml")
		c.Dir = dir
		c.Stderr = new(strings.Builder)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
		return c
	}

	killed := start()
	<-came
	killed.Process.Kill()
	killed.Wait()
	codes := make(chan int, 2)
	for range 2 {
		c := start()
		go func() {
			c.Wait() // its error is the exit code
			codes <- c.ProcessState.ExitCode()
			if text := fmt.Sprint(c.Stderr); c.ProcessState.ExitCode() == 4 && !strings.Contains(text, `"jobs.results.jsonl": in use by another run`) {
				t.Errorf("the run that came second said\n%s", text)
			}
		}()
	}
	first := <-codes // that which found the file in use: the other has no answer yet
	close(answer)
	if got, want := []int{first, <-codes}, []int{4, 0}; !slices.Equal(got, want) {
		t.Errorf("the two runs ended with %v, want %v", got, want)
	}
	got := statuses(t, filepath.Join(dir, "jobs.results.jsonl"))
	for i := range 50 {
		if id := fmt.Sprintf("job-%d", i); got[id] != results.Succeeded {
			t.Errorf("%s: %q, want it succeeded", id, got[id])
		}
	}
}
