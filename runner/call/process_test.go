//go:build unix

package call

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// until waits for what a command under way does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// groupOf returns the process group that a command wrote to path.
func groupOf(t *testing.T, path string) int {
	t.Helper()
	until(t, path, func() bool { return exists(path) && strings.HasSuffix(readFile(t, path), "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestExecEnds(t *testing.T) {
	const grace = time.Second
	cancelled := func(c *Client, cancel context.CancelCauseFunc) { cancel(errors.New("stopping")) }
	closed := func(c *Client, cancel context.CancelCauseFunc) { c.Close() }
	hurried := func(c *Client, cancel context.CancelCauseFunc) { cancelled(c, cancel); c.Close() }
	const ( // each says that it is ready by writing its group to $F
		meek  = `echo $$ >$F; sleep 60`
		deaf  = `trap "" TERM; echo $$ >$F; sleep 60 & wait`
		clean = `trap 'sleep 0.1; echo clean; exit 0' TERM; echo $$ >$F; while :; do sleep 0.05; done`
		lead  = `trap 'exit 1' TERM; (`
		wait  = `) & wait`
	)
	tests := []struct {
		name   string
		shell  string
		stop   func(*Client, context.CancelCauseFunc) // nil: the timeout does
		signal string
		stdout string
		whole  bool // it takes the whole grace
	}{
		{"the timeout ends a command", meek, nil, "SIGTERM", "", false},
		{"which may not listen", deaf, nil, "SIGKILL", "", true},
		{"a cancelled one is asked first", meek, cancelled, "SIGTERM", "", false},
		{"and may not listen", deaf, cancelled, "SIGKILL", "", true},
		{"or clean up", clean, cancelled, "", "clean\n", false},
		{"its children may clean up as well", lead + clean + wait, cancelled, "", "clean\n", false},
		{"or be killed in the end", lead + deaf + wait, cancelled, "", "", true},
		{"one whose client is closed is not asked", deaf, closed, "SIGKILL", "", false},
		{"closing cuts the grace short", deaf, hurried, "SIGKILL", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, Config{Grace: grace})
			ready := filepath.Join(t.TempDir(), "ready")
			job := shellJob(tt.shell, func(j *jobspec.Job) { j.Exec.Env = []jobspec.EnvVar{{Name: "F", Value: ready}} })
			kind := Cancelled
			if tt.stop == nil {
				kind, job.Timeout = Timeout, time.Second
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done, start := make(chan Outcome), time.Now()
			go func() { done <- c.Call(ctx, Attempt{Job: job}) }()
			group := groupOf(t, ready)
			began := time.Now()
			if tt.stop != nil {
				tt.stop(c, cancel)
			}
			out := <-done
			took := time.Since(began)
			if tt.stop == nil {
				took = time.Since(start) - job.Timeout
			}
			check(t, job, out, kind, string(kind), true)
			if tt.whole != (took >= grace) || took > 2*grace {
				t.Errorf("the end took %v of a grace of %v", took, grace)
			}
			if out.Exec.Signal != tt.signal || out.Exec.Stdout != tt.stdout {
				t.Errorf("signal %q, stdout %q; want %q, %q", out.Exec.Signal, out.Exec.Stdout, tt.signal, tt.stdout)
			}
			until(t, "the end of the group", func() bool { return !alive(&os.Process{Pid: group}) })
		})
	}
}

// Close reaches a command that its own timeout has ended before and that is in its grace.
func TestExecKillWithinGrace(t *testing.T) {
	c := newClient(t, Config{Grace: time.Minute})
	marker := filepath.Join(t.TempDir(), "asked")
	job := shellJob("trap 'echo >"+marker+"' TERM; while :; do sleep 60 & wait; done", timeout(100*time.Millisecond))
	done := make(chan Outcome)
	go func() { done <- c.Call(t.Context(), Attempt{Job: job}) }()
	until(t, "TERM", func() bool { return exists(marker) })
	began := time.Now()
	c.Close()
	check(t, job, <-done, Timeout, "timeout", true)
	if took := time.Since(began); took > prompt {
		t.Errorf("the end took %v", took)
	}
}
