//go:build linux || darwin

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentlimit/limits"
)

// version is that of the files. Another version's are refused.
const version = 1

// snapshot is the file that all members share.
type snapshot struct {
	Version int
	Now     limits.Time // of the step that wrote it
	Clock   anchor
	limits.Stored
}

// memberFile says what a member, or a command, holds.
type memberFile struct {
	Clock anchor
	limits.Stored
}

// state is what one step works on.
type state struct {
	limits.State
	now      limits.Time
	snapshot snapshot
	live     map[string]bool // the members whose lock is held
}

// load reads the folder: the snapshot, and what every living process holds. What
// dead ones left is removed.
func (d *dir) load() (*state, error) {
	st := &state{live: make(map[string]bool)}
	known, err := d.loadSnapshot(st)
	if err != nil {
		return nil, err
	}
	files, err := d.loadMembers(st)
	if err != nil {
		return nil, err
	}
	snap := &st.snapshot
	if !known {
		for i := range files {
			if files[i].Clock.Boot == d.clock.boot {
				snap.Clock = files[i].Clock
			}
		}
	}
	snap.Clock = d.clock.follow(snap.Clock, snap.Now)
	st.now = max(d.clock.now(), snap.Now)
	if !known {
		snap.Empty = st.now
	}
	waiting := snap.Members
	snap.Members = nil
	st.Load(&snap.Stored, st.now)
	for i := range files {
		st.Load(&files[i].Stored, st.now)
	}
	for name := range waiting {
		if !st.live[name] {
			delete(waiting, name)
		}
	}
	st.Load(&limits.Stored{Members: waiting}, st.now)
	return st, nil
}

// loadSnapshot reads state.json. It is not known if it was lost or damaged; a
// folder that was never used is known to be new.
func (d *dir) loadSnapshot(st *state) (known bool, err error) {
	path := d.file("state.json")
	text, err := d.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if d.look {
			return true, nil
		}
		if err := os.Mkdir(d.members(), 0o700); err == nil {
			return true, nil
		}
		d.warn(path + " is gone: buckets start empty, and pauses are forgotten")
		return false, nil
	case err != nil:
		return false, err
	}
	err = json.Unmarshal(text, &st.snapshot)
	if v := st.snapshot.Version; err == nil && v != version {
		return false, fmt.Errorf("%s is of version %d, and this agentlimit writes version %d", path, v, version)
	}
	if err == nil {
		return true, nil
	}
	st.snapshot = snapshot{}
	if d.look {
		return false, fmt.Errorf("%s is damaged: whoever starts a call next renames it; buckets start empty then, and pauses are forgotten", path)
	}
	if err := os.Rename(path, path+".damaged"); err != nil {
		return false, err
	}
	d.warn(fmt.Sprintf("%s is damaged, and was renamed to state.json.damaged: buckets start empty, and pauses are forgotten (%v)", path, err))
	return false, nil
}

// loadMembers returns the files of all who live.
func (d *dir) loadMembers(st *state) ([]memberFile, error) {
	entries, err := os.ReadDir(d.members())
	switch {
	case d.look && errors.Is(err, fs.ErrNotExist): // nobody has been here yet
	case errors.Is(err, fs.ErrNotExist):
		return nil, errRemoved
	case err != nil:
		return nil, err
	}
	var files []memberFile
	var dead []string
	for i := len(entries) - 1; i >= 0; i-- { // ID.lock before ID.json
		name := entries[i].Name()
		id, _, _ := strings.Cut(name, ".")
		counts := st.live[id]
		if suffix := filepath.Ext(name); suffix != ".json" {
			if counts, err = locked(filepath.Join(d.members(), name)); err != nil {
				return nil, err
			}
			if suffix == ".lock" && counts {
				st.live[id] = true
				continue
			}
		}
		if !counts {
			dead = append(dead, name)
			continue
		}
		if name == d.self+".json" {
			files = append(files, d.held) // a step that failed may have left another
			continue
		}
		text, err := d.read(filepath.Join(d.members(), name))
		if err != nil {
			return nil, err
		}
		var file memberFile
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("%s is damaged (%w)", filepath.Join(d.members(), name), err)
		}
		files = append(files, file)
	}
	for _, name := range dead {
		if !d.look {
			_ = os.Remove(filepath.Join(d.members(), name)) // it counts for nothing
		}
	}
	return files, nil
}

// writeSnapshot writes the snapshot beside the one that counts.
func (d *dir) writeSnapshot(st *state, shared limits.Stored) error {
	st.snapshot.Version, st.snapshot.Now, st.snapshot.Stored = version, st.now, shared
	text, err := encode(st.snapshot)
	if err != nil {
		return err
	}
	return d.write("state.new", text)
}

func (d *dir) replaceSnapshot() error { return d.replace("state.new", d.file("state.json")) }

func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.SpaceAfterComma(true))
	return append(text, '\n'), err
}
