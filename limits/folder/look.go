//go:build linux || darwin

package folder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentlimit/limits"
)

// Look returns what the folder's members hold and wait for, and changes nothing.
// The error wraps [io/fs.ErrNotExist] if there is no such folder.
func Look(path string) ([]limits.KeyStatus, error) {
	c, err := systemClock()
	d := &dir{path: path, warn: func(string) {}, look: true, clock: c, turn: make(chan struct{}, 1)}
	if err = errors.Join(err, d.open(os.O_RDONLY)); err != nil {
		return nil, fmt.Errorf("look at coordinator folder: %w", err)
	}
	defer d.close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all []limits.KeyStatus
	err = d.step(ctx, func(st *state) error {
		all = st.Status(st.now)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at coordinator folder %s: %w", path, err)
	}
	return all, nil
}
