package call

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.CreationFlags = syscall.CREATE_NEW_PROCESS_GROUP
}

// shell hands text to cmd.exe as it is, since that reads no argument list.
func shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /C ` + text}
	return cmd
}

// signalGroup ends p and what it started if sig is SIGKILL. Nothing asks a process to
// end here.
func signalGroup(p *os.Process, sig syscall.Signal) bool {
	if sig != syscall.SIGKILL {
		return false
	}
	exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run()
	return p.Kill() == nil
}

func alive(*os.Process) bool { return false }

func signalName(*os.ProcessState) string { return "" }

// MaxConcurrency returns how many attempts at once this process's handles allow:
// here, as many as anyone asks for.
func MaxConcurrency() int { return 1 << 20 }

// quiet reports whether nothing comes on a connection within a millisecond: a look at
// what is there already is not to be had here.
func quiet(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	c.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func hold(string) (*os.File, error) { return nil, errors.ErrUnsupported }
