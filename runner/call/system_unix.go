//go:build unix

package call

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives cmd a session of its own: no terminal, and a process group by
// which all of it can be ended. Signals need no care: those that Go handles are
// reset to their default at exec, and it ignores none by itself.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func shell(ctx context.Context, text string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", text)
}

// signalGroup sends sig to p's group and reports whether there is one. Its number
// is not given to others while any process is in it.
func signalGroup(p *os.Process, sig syscall.Signal) bool { return syscall.Kill(-p.Pid, sig) == nil }

// alive reports whether p's group has a process that runs. Zombies do not count:
// where the first process of a container does not wait for orphans, those stay.
func alive(p *os.Process) bool {
	if !signalGroup(p, 0) {
		return false
	}
	if runs(fmt.Sprintf("/proc/%d/stat", p.Pid), p.Pid) {
		return true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	return len(stats) == 0 || // no Linux: believe the kernel
		slices.ContainsFunc(stats, func(stat string) bool { return runs(stat, p.Pid) })
}

// runs reports whether the process that a stat file is about is of the group and
// no zombie.
func runs(stat string, group int) bool {
	b, _ := os.ReadFile(stat)
	// pid (name) state ppid pgrp ..., and the name may hold anything
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return len(fields) > 2 && !strings.Contains("ZX", fields[0]) && fields[2] == strconv.Itoa(group)
}

// signalName returns the signal that ended a process, such as "SIGTERM", and
// empty if it exited.
func signalName(state *os.ProcessState) string {
	return unix.SignalName(state.Sys().(syscall.WaitStatus).Signal())
}

// MaxConcurrency returns how many attempts at once this process's file handles
// allow: up to eight each, a few for the rest. It is at least 1.
func MaxConcurrency() int {
	const rest, each, plenty = 24, 8, 1 << 20
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return plenty
	}
	return max(1, (int(min(limit.Cur, each*plenty))-rest)/each)
}

// quiet reports whether nothing has come on a connection that is idle: neither its end
// nor what nobody has asked for, which the next request would take for its answer.
func quiet(c net.Conn) (nothing bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
		nothing = err == unix.EAGAIN
		return true
	})
	return nothing && err == nil
}

// hold locks a folder that nobody else holds, for as long as the file is open.
func hold(folder string) (*os.File, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
