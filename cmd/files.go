package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentlimit/runner/results"
)

// writeWhole makes a file with data, of mode 0600, that appears whole or not at
// all: if it fails, what was there stays. A link stays one; a device or a pipe is
// written to. Without data it only says what would keep it from its work.
func writeWhole(path string, data []byte) error {
	info, err := os.Stat(path)
	isStream := err == nil && !info.Mode().IsRegular() || strings.HasPrefix(path, "/dev/")
	var f *os.File
	switch {
	case err == nil && info.IsDir():
		return syscall.EISDIR
	case isStream && data == nil:
		return nil
	case isStream:
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	default:
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // 0600
	}
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Close())
	}
	if err == nil && !isStream && data != nil {
		err = os.Rename(f.Name(), path)
	}
	if f != nil && !isStream && (err != nil || data == nil) {
		os.Remove(f.Name())
	}
	if place, ok := errors.AsType[*fs.PathError](err); ok {
		return place.Err // the caller names the file
	}
	return err
}

// sameFile reports whether two paths are one, by whatever spelling or link, though
// there may be no file yet.
func sameFile(a, b string) bool {
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return results.SameFile(a, []string{b}) != "" || errA == nil && errB == nil && absA == absB
}
