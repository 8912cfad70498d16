//go:build unix

package results

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for as long as it is open in this process. The commands
// that a run starts do not inherit it.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrInUse
		}
		return os.NewSyscallError("lock", err)
	}
}
