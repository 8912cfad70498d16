//go:build unix

package call

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeMax is more than any pipe holds, so that a drain ends even if what the
// command left behind writes without end.
const pipeMax = 1 << 20

// drain reads what the pipe holds, without waiting.
func (s *stream) drain() {
	s.r.SetReadDeadline(time.Time{})
	raw, err := s.r.SyscallConn()
	if err != nil {
		return
	}
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	for read := 0; read < pipeMax; {
		var n int
		raw.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buf[:])
			return true
		})
		if n <= 0 {
			return
		}
		read += n
		s.Write(buf[:n])
	}
}

// isolate gives cmd a session of its own: no terminal, and a process group by
// which all of it can be ended. Signals need no care: those that Go handles are
// reset to their default at exec, and it ignores none by itself.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func shell(text string) *exec.Cmd { return exec.Command("/bin/sh", "-c", text) }

// terminate asks p's group to end and reports whether it may be given time.
func terminate(p *os.Process) bool {
	syscall.Kill(-p.Pid, syscall.SIGTERM)
	return true
}

// kill ends p's group. The group's number is not given to others while any
// process is in it.
func kill(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }

// signalName returns the signal that ended a process, such as "SIGTERM", and
// empty if it exited.
func signalName(state *os.ProcessState) string {
	status := state.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		return ""
	}
	return unix.SignalName(status.Signal())
}

// MaxConcurrency returns how many attempts at once this process's file handles
// allow: up to eight each, a few for the rest. It is at least 1.
func MaxConcurrency() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1 << 20
	}
	const rest, each = 24, 8
	if limit.Cur < rest+each {
		return 1
	}
	return int(min(limit.Cur, 1<<23)-rest) / each
}
