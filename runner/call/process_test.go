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
	const grace = 400 * time.Millisecond
	cancelled := func(c *Client, cancel context.CancelCauseFunc) { cancel(errors.New("stopping")) }
	killed := func(c *Client, cancel context.CancelCauseFunc) { cancel(ErrKill) }
	closed := func(c *Client, cancel context.CancelCauseFunc) { c.Close() }
	hurried := func(c *Client, cancel context.CancelCauseFunc) { cancelled(c, cancel); c.Close() }
	const deaf = `trap "" TERM; `
	tests := []struct {
		name      string
		shell     string
		timeout   time.Duration
		stop      func(*Client, context.CancelCauseFunc) // nil: the timeout does
		kind      Kind
		signal    string
		stdout    string
		low, high time.Duration
	}{
		{"the timeout ends a command", "sleep 60", 50 * time.Millisecond, nil, Timeout, "SIGTERM", "", 0, 300 * time.Millisecond},
		{"which may not listen", deaf + "sleep 60", 50 * time.Millisecond, nil, Timeout, "SIGKILL", "", grace, grace + 300*time.Millisecond},
		{"a cancelled one is asked first", "sleep 60", 0, cancelled, Cancelled, "SIGTERM", "", 0, 200 * time.Millisecond},
		{"and may not listen", deaf + "sleep 60", 0, cancelled, Cancelled, "SIGKILL", "", grace, grace + 200*time.Millisecond},
		{"or clean up", "trap 'sleep 0.1; echo clean; exit 0' TERM; sleep 60 & wait", 0, cancelled, Cancelled, "", "clean\n", 100 * time.Millisecond, grace},
		{"its children may clean up as well", "(trap 'sleep 0.1; echo clean; exit 0' TERM; sleep 60 & wait) & wait", 0, cancelled, Cancelled, "SIGTERM", "clean\n", 100 * time.Millisecond, grace},
		{"or be killed in the end", "(" + deaf + "sleep 60 & wait) & wait", 0, cancelled, Cancelled, "SIGTERM", "", grace, grace + 200*time.Millisecond},
		{"a killed one is not asked", deaf + "sleep 60", 0, killed, Cancelled, "SIGKILL", "", 0, 100 * time.Millisecond},
		{"nor one whose client is closed", deaf + "sleep 60", 0, closed, Cancelled, "SIGKILL", "", 0, 100 * time.Millisecond},
		{"closing cuts the grace short", deaf + "sleep 60", 0, hurried, Cancelled, "SIGKILL", "", 0, 100 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, Config{Grace: grace})
			pidFile := filepath.Join(t.TempDir(), "pid")
			// The traps of the children are set a moment after this is written.
			job := shellJob("{ sleep 0.05; echo $$ >" + pidFile + "; } & " + tt.shell)
			if tt.timeout > 0 {
				job = shellJob("echo $$ >"+pidFile+"; "+tt.shell, timeout(tt.timeout))
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan Outcome)
			go func() { done <- c.Call(ctx, Attempt{Job: job}) }()
			group := groupOf(t, pidFile)
			began := time.Now()
			if tt.stop != nil {
				tt.stop(c, cancel)
			}
			out := <-done
			took := time.Since(began)
			check(t, job, out, tt.kind, string(tt.kind), true)
			if took < tt.low || took > tt.high {
				t.Errorf("the end took %v, want %v to %v", took, tt.low, tt.high)
			}
			if out.Exec.Signal != tt.signal || out.Exec.Stdout != tt.stdout {
				t.Errorf("signal %q, stdout %q; want %q, %q", out.Exec.Signal, out.Exec.Stdout, tt.signal, tt.stdout)
			}
			until(t, "the end of the group", func() bool { return !alive(&os.Process{Pid: group}) })
		})
	}
}

// The parent's order to kill reaches a command that its own timeout has ended
// before and that is in its grace.
func TestExecKillWithinGrace(t *testing.T) {
	c := newClient(t, Config{Grace: time.Minute})
	ctx, cancel := context.WithCancelCause(t.Context())
	marker := filepath.Join(t.TempDir(), "asked")
	job := shellJob("trap 'echo >"+marker+"' TERM; while :; do sleep 60 & wait; done", timeout(100*time.Millisecond))
	done := make(chan Outcome)
	go func() { done <- c.Call(ctx, Attempt{Job: job}) }()
	until(t, "TERM", func() bool { return exists(marker) })
	began := time.Now()
	cancel(ErrKill)
	check(t, job, <-done, Timeout, "timeout", true)
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("the end took %v", took)
	}
}
