//go:build linux || darwin

package folder

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A step looks at two files of each member: they are read with as few calls to the
// kernel as it takes.

func opened(path string, how int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, how|unix.O_CLOEXEC, 0o600); err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return fd, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// read returns what a file holds, valid until the next read.
func (d *dir) read(path string) ([]byte, error) {
	fd, err := opened(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if d.room == nil {
		d.room = make([]byte, 16<<10)
	}
	for size := 0; ; {
		n, err := unix.Read(fd, d.room[size:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if size += n; size < len(d.room) {
			return d.room[:size], nil // a file of a disk is read as far as there is room
		}
		d.room = append(d.room, make([]byte, len(d.room))...)
	}
}

// write writes a file over what is left of an earlier one.
func (d *dir) write(name string, text []byte) error {
	file, err := os.OpenFile(d.file(name), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Truncate(int64(len(text)))
	}
	return errors.Join(err, file.Close())
}

// replace puts a written file in the place of another. The two change places if they
// can: a file that has its blocks already is written faster, and ext4 does not hurry
// to write it to the disk.
func (d *dir) replace(name, target string) error {
	if exchange(d.file(name), target) == nil {
		return nil
	}
	return os.Rename(d.file(name), target)
}

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

// tryLock locks a file that nobody else has locked.
func tryLock(f *os.File) error {
	return os.NewSyscallError("flock", flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// locked reports whether a process has the file locked.
func locked(path string) (bool, error) {
	fd, err := opened(path, unix.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }() // lets go of the lock that the test may have got
	switch err := flock(fd, unix.LOCK_SH|unix.LOCK_NB); err {
	case nil:
		return false, nil
	case unix.EWOULDBLOCK:
		return true, nil
	default:
		return false, os.NewSyscallError("flock", err)
	}
}
