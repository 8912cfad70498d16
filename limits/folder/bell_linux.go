package folder

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// newBell returns a file that can be read when the member was rung for, or when a
// member has gone: the kernel closes the lock of one that dies, the only files in
// there that are open for writing. (Libraries for file notification do not tell of
// either.)
func newBell(members, lock string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	bell := os.NewFile(uintptr(fd), "bell")
	if _, err = unix.InotifyAddWatch(fd, lock, unix.IN_ATTRIB); err == nil {
		_, err = unix.InotifyAddWatch(fd, members, unix.IN_CLOSE_WRITE)
	}
	if err != nil {
		_ = bell.Close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	return bell, nil
}

// ring wakes members, by touching their locks: both times, for the kernel calls one
// alone something else. It may fail for one that has left.
func (d *dir) ring(members []string) {
	now := time.Now()
	for _, name := range members {
		_ = os.Chtimes(filepath.Join(d.members(), name+".lock"), now, now)
	}
}

// newName names a member: its process, and what no other of that number had.
func newName() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(id[:])
}
