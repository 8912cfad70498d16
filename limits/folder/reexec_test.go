//go:build linux || darwin

package folder

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentlimit/limits"
)

// The test binary is also the processes that share a folder: TestMain runs the one
// of these that the environment names.
var processes = map[string]func(path string) error{
	"caller": caller, "racer": racer, "holder": holder, "child": child,
	"admitter": admitter, "full": full,
}

const processVar, folderVar, serverVar = "FOLDER_TEST_PROCESS", "FOLDER_TEST_FOLDER", "FOLDER_TEST_SERVER"

func TestMain(m *testing.M) {
	process, found := processes[os.Getenv(processVar)]
	if !found {
		os.Exit(m.Run())
	}
	if err := process(os.Getenv(folderVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is one that a test has started.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
}

func start(t testing.TB, name, path string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, processVar+"="+name, folderVar+"="+path)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have ended
		_ = cmd.Wait()
	})
	return &process{cmd, stdin, bufio.NewScanner(stdout)}
}

// says waits for the next line of the process.
func (p *process) says(t testing.TB) string {
	t.Helper()
	if !p.stdout.Scan() {
		t.Fatalf("a process ended: %v", p.stdout.Err())
	}
	return p.stdout.Text()
}

// end lets the process end by itself.
func (p *process) end(t testing.TB) {
	t.Helper()
	_ = p.stdin.Close()
	for p.stdout.Scan() {
	}
	if err := p.Wait(); err != nil {
		t.Errorf("a process failed: %v", err)
	}
}

func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// untilEOF is closed when standard input ends. A line of it before that sets the
// counter to zero.
func untilEOF(counter *atomic.Int64) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			counter.Store(0)
		}
		close(over)
	}()
	return over
}

// grant asks until the claim is granted, or over is closed.
func grant(f *Folder, over <-chan struct{}, batch *limits.Batch, reply *limits.Reply) (bool, error) {
	for {
		if err := f.Sync(context.Background(), batch, reply); err != nil {
			return false, err
		}
		batch.Releases = nil
		v := reply.Verdicts[0]
		if v.Cause == limits.Granted {
			return true, nil
		}
		var at <-chan time.Time
		if v.At > 0 {
			at = time.After(v.At.Sub(f.Now()))
		}
		select {
		case <-at:
		case <-f.Changed():
		case <-over:
			return false, nil
		}
	}
}
