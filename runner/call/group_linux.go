package call

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// alive reports whether p's group has a process that runs. Zombies do not count:
// where the first process of a container does not wait for orphans, those stay.
func alive(p *os.Process) bool {
	if syscall.Kill(-p.Pid, 0) != nil {
		return false
	}
	if runs(fmt.Sprintf("/proc/%d/stat", p.Pid), p.Pid) {
		return true
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		if runs(stat, p.Pid) {
			return true
		}
	}
	return err != nil || len(stats) == 0 // no /proc: believe the kernel
}

// runs reports whether the process that a stat file is about is of the group and
// no zombie.
func runs(stat string, group int) bool {
	b, err := os.ReadFile(stat)
	if err != nil {
		return false
	}
	// pid (name) state ppid pgrp ..., and the name may hold anything
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return len(fields) > 2 && fields[0][0] != 'Z' && fields[0][0] != 'X' &&
		string(fields[2]) == strconv.Itoa(group)
}
