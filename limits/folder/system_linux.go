package folder

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock that counts from the machine's start, suspension included.
const sinceBoot = unix.CLOCK_BOOTTIME // since Linux 2.6.39

// bootID names the time since the machine started last.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// networks are file systems on which a lock of one machine is none on another, or
// of which that cannot be known.
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "CIFS", unix.CODA_SUPER_MAGIC: "Coda", unix.AFS_SUPER_MAGIC: "AFS",
	unix.AFS_FS_MAGIC: "AFS", unix.V9FS_MAGIC: "9P", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.NCP_SUPER_MAGIC: "NCP", unix.OCFS2_SUPER_MAGIC: "OCFS2", unix.FUSE_SUPER_MAGIC: "FUSE",
	0x0bd00bd0: "Lustre", 0x01161970: "GFS2", 0x47504653: "GPFS",
}

// network names the network's file system that a folder is on; empty: it is on none.
func network(sys *unix.Statfs_t) string { return networks[int64(sys.Type)&0xffffffff] }

// exchange has two files change places.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

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
