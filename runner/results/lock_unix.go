//go:build unix

package results

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A lock may outlive its run for a moment: a process that was about to become a
// command when the run was killed has the file open until it is that command.
const (
	lockPatience = 300 * time.Millisecond
	lockPause    = 5 * time.Millisecond
)

// lock takes the file for as long as it is open in this process. The commands
// that a run starts do not inherit it.
func lock(file *os.File) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return os.NewSyscallError("lock", err)
		case time.Now().After(end):
			return ErrInUse
		}
	}
}
