package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writeWhole makes a file with data, of mode 0600, that appears whole or not at
// all: if it fails, what was there stays. A device or a pipe is written to.
func writeWhole(path string, data []byte) error {
	if isStream(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return cause(err)
		}
		_, err = f.Write(data)
		return cause(errors.Join(err, f.Close()))
	}
	f, place, err := beside(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), place)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return cause(err)
}

// canWriteWhole says early what would keep [writeWhole] from its work.
func canWriteWhole(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return syscall.EISDIR
	}
	if isStream(path) {
		return nil
	}
	f, _, err := beside(path)
	if err != nil {
		return err
	}
	f.Close() // nothing was written
	return os.Remove(f.Name())
}

// isStream reports whether path is no place for a file: others have it open.
func isStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() || strings.HasPrefix(path, "/dev/")
}

// beside opens a hidden file in the folder of path, and returns the place that it
// is to get: a link stays one.
func beside(path string) (_ *os.File, place string, _ error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // 0600
	return f, path, cause(err)
}

// cause is err without the name of the file, which the caller says.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
