package folder

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock that counts on while the machine sleeps.
const sinceBoot = unix.CLOCK_MONOTONIC

// bootID names the time since the machine started last.
func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	return id, os.NewSyscallError("sysctl kern.bootsessionuuid", err)
}

// network names the file system that a folder is on if that is not of this machine.
func network(sys *unix.Statfs_t) string {
	if sys.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(sys.Fstypename[:])
}

// exchange does not work here: one file replaces the other then.
func exchange(string, string) error { return errors.ErrUnsupported }

// newBell returns an error: members look by themselves, every [poll].
func newBell(string, string) (*os.File, error) { return nil, errors.ErrUnsupported }
