package call

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agentlimit/runner/results"
)

// saveFile returns the temporary file for what is to become the file path, and
// nil if path is empty. It lies beside its place, so a process that is killed may
// leave a hidden temporary file, but never half of the real one. Its mode is 0600;
// folders that are missing are made, with 0700.
func (c *Client) saveFile(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	if err := c.replaceable(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
}

// replaceable refuses a path at which something is that a rename must not
// destroy. A link is refused wherever it leads: /dev/stdout is one.
func (c *Client) replaceable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fail(Broken, "file", "save output: %q is there and is no regular file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if results.SameFile(path, c.cfg.Keep...) != "" {
		return fail(Broken, "file", "save output: it is a file that this run reads or writes")
	}
	return nil
}
