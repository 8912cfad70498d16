package results

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file for as long as it is open in this process. Windows keeps
// other processes away from locked bytes, so the one that is locked lies far
// behind every record: reports can be made while the run goes on.
func lock(file *os.File) error {
	behind := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrInUse
	}
	return os.NewSyscallError("lock", err)
}
