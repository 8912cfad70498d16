//go:build unix

package call

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// A process that ignores or handles signals hands none of that on.
func TestExecSignalsAreDefault(t *testing.T) {
	if os.Getenv("CALL_TEST_CHILD") == "" {
		cmd := exec.Command("sh", "-c", `trap "" PIPE; exec "$0" -test.run '^TestExecSignalsAreDefault$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "CALL_TEST_CHILD=1")
		if text, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(text, []byte("--- PASS")) {
			t.Errorf("with SIGPIPE ignored at the start: %v\n%s", err, text)
		}
		return
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	<-ch
	c := newClient(t, Config{})
	for _, name := range []string{"PIPE", "INT", "TERM", "HUP"} {
		job := shellJob("kill -" + name + " $$; echo still here")
		out := c.Call(t.Context(), Attempt{Job: job})
		check(t, job, out, Answered, "signal", false)
		if out.Exec.Signal != "SIG"+name {
			t.Errorf("kill -%s: %+v", name, out.Exec)
		}
	}
}

func slowly(w http.ResponseWriter, r *http.Request) {
	time.Sleep(50 * time.Millisecond)
}

// With few file handles an attempt fails as one that may be repeated, and says
// which limit it was.
func TestFewHandles(t *testing.T) {
	if os.Getenv("CALL_TEST_CHILD") == "" {
		cmd := exec.Command("sh", "-c", `ulimit -n 64; exec "$0" -test.run '^TestFewHandles$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "CALL_TEST_CHILD=1", "CALL_TEST_URL="+serve(t, slowly).URL)
		if text, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(text, []byte("--- PASS")) {
			t.Errorf("with 64 file handles: %v\n%s", err, text)
		}
		return
	}
	if n := MaxConcurrency(); n < 1 || n > 8 {
		t.Errorf("MaxConcurrency() = %d with 64 handles", n)
	}
	request := httpJob(os.Getenv("CALL_TEST_URL"))
	command := shellJob("sleep 0.05")
	for _, job := range []*jobspec.Job{request, command} {
		c := newClient(t, Config{Concurrency: 200})
		outs := make(chan Outcome, 200)
		parallel(200, 200, func() { outs <- c.Call(t.Context(), Attempt{Job: job}) })
		close(outs)
		short := 0
		for out := range outs {
			if out.Kind == OK {
				continue
			}
			short++
			check(t, job, out, Refused, "system", false)
			if !strings.Contains(out.Error.Message, "ulimit -n") {
				t.Errorf("message %q, want ulimit -n in it", out.Error.Message)
			}
		}
		c.Close()
		fit := newClient(t, Config{Concurrency: MaxConcurrency()})
		parallel(MaxConcurrency(), 100, func() { check(t, job, fit.Call(t.Context(), Attempt{Job: job}), OK, "", false) })
		fit.Close()
		if short == 0 {
			t.Errorf("200 calls at once never ran out of handles")
		}
	}
}

func TestNoHandleIsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	c := newClient(t, Config{})
	call := func() {
		for _, job := range []*jobspec.Job{
			execJob([]string{"true"}, stdin("x")), execJob([]string{"no-such-program"}), shellJob("sleep 1 &"),
			execJob([]string{"cat"}, func(j *jobspec.Job) { j.Exec.StdinFile = "/no/such" }),
			httpJob("http://" + closedAddress(t)), httpJob("http://h/", func(j *jobspec.Job) { j.HTTP.BodyFile = "/" }),
		} {
			c.Call(t.Context(), Attempt{Job: job})
		}
	}
	call()
	before := count()
	for range 5 {
		call()
	}
	if after := count(); after > before+2 {
		t.Errorf("%d file handles before, %d after", before, after)
	}
}
