package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// whole is a file that appears whole or not at all, with the mode 0600: until
// [whole.close] it is a hidden one beside its place. A link stays one.
type whole struct {
	*os.File
	place string // empty: it is a device or pipe, and written to as it is
}

// create opens a whole file, which is to be none of others. Its errors leave it to the
// caller to name the file.
func create(path string, others ...string) (w *whole, err error) {
	w = &whole{place: path}
	if err := cmp.Or(taken(path, others), notPacked(path)); err != nil {
		return nil, err
	}
	if isStream(path) {
		w.place = ""
		w.File, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		return w, pathless(err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		w.place = real
	}
	if holdsResults(w.place) {
		return nil, errors.New("it holds the results of a run")
	}
	w.File, err = os.CreateTemp(filepath.Dir(w.place), "."+filepath.Base(w.place)+".*.tmp") // 0600
	return w, pathless(err)
}

// taken refuses a file that is one of others, which are read or written already.
func taken(path string, others []string) error {
	if same := results.SameFile(path, others...); same != "" {
		return fmt.Errorf("it is the file %q, which is read or written already", same)
	}
	return nil
}

// notPacked refuses the name of a compressed file, in which there would be plain text.
func notPacked(path string) error {
	if _, packed := jobspec.PackedName(path); packed {
		return errors.New("nothing is written compressed")
	}
	return nil
}

// holdsResults reports whether a file begins with a record of what has happened: no
// other file is worth as much.
func holdsResults(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for r, err := range results.Read(f) {
		return err == nil && r.Run != forecastRun
	}
	return false
}

// isStream reports whether path is no place for a file: others have it open.
func isStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() || strings.HasPrefix(path, "/dev/")
}

// close has the file appear if err, what was met while it was written, is nil;
// else what was there before stays.
func (w *whole) close(err error) error {
	if w.place == "" {
		return errors.Join(err, w.Close())
	}
	err = errors.Join(err, w.Sync(), w.Close())
	if err == nil {
		err = os.Rename(w.Name(), w.place)
	}
	if err != nil {
		os.Remove(w.Name())
	}
	return pathless(err)
}

// pathless is err without the name of the file.
func pathless(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
