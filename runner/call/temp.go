package call

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tempPrefix = ".agentlimit-temp-"
	// tempYoung is how old a folder must be to be looked at by others: by then it is held.
	tempYoung = time.Minute
)

// Temp is a folder for files that are of no use once this process is gone. It goes with
// Remove or, if the process was killed, when another one makes its own.
type Temp struct {
	Path string
	held *os.File // a lock on it, which ends with the process; nil: there are none here
}

// NewTemp makes a folder, and removes those that killed processes have left.
func NewTemp() (*Temp, error) {
	within := os.TempDir()
	entries, _ := os.ReadDir(within)
	for _, e := range entries {
		if info, err := e.Info(); strings.HasPrefix(e.Name(), tempPrefix) && err == nil && info.IsDir() && time.Since(info.ModTime()) > tempYoung {
			removeLeft(filepath.Join(within, e.Name()))
		}
	}
	path, err := os.MkdirTemp(within, tempPrefix)
	if err != nil {
		return nil, err
	}
	held, _ := hold(path) // else nobody else can tell either
	return &Temp{path, held}, nil
}

// removeLeft removes a folder that nobody holds.
func removeLeft(path string) {
	if f, err := hold(path); err == nil {
		(&Temp{path, f}).Remove()
	}
}

// Remove removes the folder with all that is in it, as far as possible.
func (t *Temp) Remove() {
	_ = os.RemoveAll(t.Path)
	_ = t.held.Close()
}
