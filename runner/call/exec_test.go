//go:build unix

package call

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/results"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes sure that the tests leave no command behind as a zombie.
func TestMain(m *testing.M) {
	code := m.Run()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		fmt.Fprintf(os.Stderr, "a child was not waited for: %d, %v\n", pid, err)
		code = 1
	}
	os.Exit(code)
}

func shellJob(text string, edits ...func(*jobspec.Job)) *jobspec.Job {
	return execJob([]string{"sh", "-c", text}, edits...)
}

func stdin(text string) func(*jobspec.Job) {
	return func(j *jobspec.Job) { j.Exec.Stdin = []byte(text) }
}

func TestExecOutcomes(t *testing.T) {
	lines := &strings.Builder{}
	for i := range 2000 {
		fmt.Fprintln(lines, "line", i)
	}
	body := func(pattern string) func(*jobspec.Job) {
		return func(j *jobspec.Job) { j.Expect.Body = regexp.MustCompile(pattern) }
	}
	tests := []struct {
		name string
		job  *jobspec.Job
		kind Kind
		code string
		want results.Exec // byte counts are those of the texts where they are 0
	}{
		{"output is kept", shellJob("echo out; echo err >&2"), OK, "", results.Exec{Stdout: "out\n", Stderr: "err\n"}},
		{"an exit code that is not expected fails", shellJob("echo no; exit 3"), Answered, "exit", results.Exec{ExitCode: 3, Stdout: "no\n"}},
		{"one that is expected does not", shellJob("exit 3", func(j *jobspec.Job) { j.Expect.ExitCodes = []int{0, 3} }), OK, "", results.Exec{ExitCode: 3}},
		{"output that does not match fails", shellJob("echo a", body("^b")), Answered, "body", results.Exec{Stdout: "a\n"}},
		{"the end by a signal is told from an exit", shellJob("kill -TERM $$"), Answered, "signal", results.Exec{ExitCode: -1, Signal: "SIGTERM"}},
		{"a broken pipe ends a command", shellJob("kill -PIPE $$; echo still here"), Answered, "signal", results.Exec{ExitCode: -1, Signal: "SIGPIPE"}},
		{"and a pipeline", shellJob("yes | head -n 1", timeout(5*time.Second)), OK, "", results.Exec{Stdout: "y\n"}},
		{"a shell is at hand", &jobspec.Job{Expect: jobspec.Expect{ExitCodes: []int{0}}, Output: jobspec.Output{Inline: 10},
			Exec: &jobspec.Exec{Shell: `echo "$0"`, InheritEnv: true}}, OK, "", results.Exec{Stdout: "/bin/sh\n"}},
		{"input is empty", execJob([]string{"cat"}), OK, "", results.Exec{}},
		{"reading it ends at once", shellJob(`read x; echo "[$x]"`), OK, "", results.Exec{Stdout: "[]\n"}},
		{"unless it is given", execJob([]string{"cat"}, stdin("given")), OK, "", results.Exec{Stdout: "given"}},
		{"more input than a pipe holds", execJob([]string{"wc", "-c"}, stdin(strings.Repeat("x", 1<<20))), OK, "", results.Exec{Stdout: "1048576\n"}},
		{"input that nobody reads", execJob([]string{"true"}, stdin(strings.Repeat("x", 1<<20))), OK, "", results.Exec{}},
		{"input that nobody reads, held open", shellJob("sleep 60 >&- 2>&- <&0 &", stdin(strings.Repeat("x", 1<<20))), OK, "", results.Exec{}},
		{"a child in the background does not hold the job", shellJob("sleep 60 & echo done"), OK, "", results.Exec{Stdout: "done\n"}},
		{"nor does it with a timeout", shellJob("sleep 60 & echo done", timeout(2*time.Second)), OK, "", results.Exec{Stdout: "done\n"}},
		{"nor one that writes without end", shellJob("yes >&2 & echo done", inline(10)), OK, "", results.Exec{Stdout: "done\n", Stderr: "y\ny\ny\ny\ny\n", StderrTruncated: true, StderrBytes: -1}},
		{"no line is cut off", shellJob("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"), OK, "", results.Exec{Stdout: lines.String()}},
		{"nor with a child in the background", shellJob("sleep 60 & i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"), OK, "", results.Exec{Stdout: lines.String()}},
		{"what follows at once is kept too", shellJob("(sleep 0.02; echo late) & echo early"), OK, "", results.Exec{Stdout: "early\nlate\n"}},
		{"bytes that are not text are base64", execJob([]string{"printf", `\377\000\376A`}), OK, "",
			results.Exec{Stdout: "/wD+QQ==", StdoutEncoding: "base64", StdoutBytes: 4}},
		{"each stream has its own cap", shellJob("head -c 300000 /dev/zero >&2; echo end", inline(4)), OK, "",
			results.Exec{Stdout: "end\n", Stderr: "\x00\x00\x00\x00", StderrBytes: 300000, StderrTruncated: true}},
		{"secrets do not show", shellJob("echo $T; echo a$T >&2", secrets("tok-12345"), func(j *jobspec.Job) {
			j.Exec.Env = []jobspec.EnvVar{{Name: "T", Value: "tok-12345"}}
		}), OK, "", results.Exec{Stdout: "***\n", Stderr: "a***\n", StdoutBytes: 10, StderrBytes: 11, StdoutRedacted: true, StderrRedacted: true}},
	}
	c := newClient(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			out := c.Call(t.Context(), Attempt{Job: tt.job, Number: 1})
			check(t, tt.job, out, tt.kind, tt.code, false)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("Call took %v", took)
			}
			if tt.want.StdoutBytes == 0 {
				tt.want.StdoutBytes = int64(len(tt.want.Stdout))
			}
			switch tt.want.StderrBytes {
			case 0:
				tt.want.StderrBytes = int64(len(tt.want.Stderr))
			case -1:
				tt.want.StderrBytes = out.Exec.StderrBytes
			}
			if diff := cmp.Diff(&tt.want, out.Exec); diff != "" {
				t.Errorf("Exec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecCannotStart(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("no shebang"), 0o700); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		job  *jobspec.Job
		code string
		says string
	}{
		{"a missing program", execJob([]string{"no-such-program", "KEY6"}, secrets("KEY6")), "spawn", "not found"},
		{"a missing path", execJob([]string{"/no/such/program"}), "spawn", "no such file"},
		{"a folder", execJob([]string{"/"}), "spawn", ""},
		{"a file that is no program", execJob([]string{script}), "spawn", "exec format"},
		{"a missing working folder", execJob([]string{"true"}, func(j *jobspec.Job) { j.Exec.Dir = "/no/such" }), "spawn", "no such file"},
		{"an argument of 1 MB", execJob([]string{"true", strings.Repeat("x", 1<<20)}), "spawn", "start command: an argument or variable is longer than this system allows (128 KiB each on Linux)"},
		{"a variable of 1 MB", execJob([]string{"true"}, func(j *jobspec.Job) {
			j.Exec.Env = []jobspec.EnvVar{{Name: "BIG", Value: strings.Repeat("x", 1<<20)}}
		}), "spawn", "ARG_MAX"},
		{"a NUL in an argument", execJob([]string{"true", "a\x00b"}), "spawn", ""},
		{"missing input", execJob([]string{"true"}, func(j *jobspec.Job) { j.Exec.StdinFile = "/no/such" }), "file", "no such file"},
		{"a pipe as input, that would block", execJob([]string{"true"}, func(j *jobspec.Job) { j.Exec.StdinFile = pipe }), "file", "regular"},
		{"no place for the output", execJob([]string{"true"}, saveTo(script+"/file")), "file", "not a directory"},
	}
	c := newClient(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := c.Call(t.Context(), Attempt{Job: tt.job})
			check(t, tt.job, out, Broken, tt.code, false)
			if m := out.Error.Message; !strings.Contains(m, tt.says) || strings.Contains(m, "KEY6") {
				t.Errorf("message %q, want %q in it", m, tt.says)
			}
		})
	}
	job := execJob([]string{"true"})
	out := c.Call(t.Context(), Attempt{Job: job, Sending: func() error { return errors.New("disk full") }})
	check(t, job, out, Broken, "unsent", false)
}

func TestExecStdinFileAndSave(t *testing.T) {
	dir := t.TempDir()
	in, saved := filepath.Join(dir, "in"), filepath.Join(dir, "saved")
	if err := os.WriteFile(in, []byte(strings.Repeat("0123456789", 20000)), 0o600); err != nil {
		t.Fatal(err)
	}
	job := execJob([]string{"cat"}, inline(10), saveTo(saved), func(j *jobspec.Job) { j.Exec.StdinFile = in })
	out := newClient(t, Config{}).Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	if readFile(t, saved) != readFile(t, in) || out.Exec.Saved != saved || out.Exec.Stdout != "0123456789" {
		t.Errorf("saved %d bytes in %q, recorded %q", len(readFile(t, saved)), out.Exec.Saved, out.Exec.Stdout)
	}
}

func TestExecEnvironment(t *testing.T) {
	t.Setenv("INHERITED", "yes")
	t.Setenv("CHANGED", "old")
	t.Setenv("AGENTLIMIT_JOB_DEADLINE", "of the job that runs this")
	job := execJob([]string{"env"}, func(j *jobspec.Job) {
		j.ID = "id 1"
		j.Exec.Env = []jobspec.EnvVar{{Name: "CHANGED", Value: "new"}}
	})
	c := newClient(t, Config{})
	attempt := Attempt{Job: job, Number: 2, Keys: []string{"host/a", "pool/b"}}
	env := func() map[string]bool {
		out := c.Call(t.Context(), attempt)
		check(t, job, out, OK, "", false)
		lines := map[string]bool{}
		for line := range strings.Lines(out.Exec.Stdout) {
			lines[strings.TrimSuffix(line, "\n")] = true
		}
		return lines
	}
	got := env()
	for _, want := range []string{"INHERITED=yes", "CHANGED=new", "AGENTLIMIT_JOB_ID=id 1",
		"AGENTLIMIT_JOB_ATTEMPT=2", "AGENTLIMIT_JOB_KEYS=host/a pool/b"} {
		if !got[want] {
			t.Errorf("environment %v, want %q", got, want)
		}
	}
	job.Exec.InheritEnv = false
	attempt.Deadline = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	want := map[string]bool{"CHANGED=new": true, "AGENTLIMIT_JOB_ID=id 1": true, "AGENTLIMIT_JOB_ATTEMPT=2": true,
		"AGENTLIMIT_JOB_KEYS=host/a pool/b": true, "AGENTLIMIT_JOB_DEADLINE=2030-01-02T03:04:05Z": true,
		"AGENTLIMIT_JOB_FEEDBACK=" + c.feedback.Path + "/2": true}
	if diff := cmp.Diff(want, env()); diff != "" {
		t.Errorf("without the inherited environment (-want +got):\n%s", diff)
	}
}

func TestExecBigOutput(t *testing.T) {
	c := newClient(t, Config{})
	job := shellJob("head -c 1000000000 /dev/zero")
	var out Outcome
	used := allocated(func() { out = c.Call(t.Context(), Attempt{Job: job}) })
	check(t, job, out, OK, "", false)
	if x := out.Exec; len(x.Stdout) != 64<<10 || x.StdoutBytes != 1e9 || !x.StdoutTruncated {
		t.Errorf("%d of %d bytes, truncated %v", len(x.Stdout), x.StdoutBytes, x.StdoutTruncated)
	}
	if used > 4<<20 {
		t.Errorf("1 GB of output allocated %d MB", used>>20)
	}
}
