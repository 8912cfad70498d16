//go:build unix && !linux

package call

import (
	"os"
	"syscall"
)

// alive reports whether p's group has a process.
func alive(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }
