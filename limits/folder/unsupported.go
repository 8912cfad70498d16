//go:build !linux && !darwin

package folder

import (
	"context"
	"errors"

	"agentlimit/limits"
)

var errUnsupported = errors.New("a folder coordinator needs Linux or macOS: use local or redis")

// Folder cannot be opened on this system.
type Folder struct{ limits.Coordinator }

// Open returns an error on this system.
func Open(context.Context, string, Options) (*Folder, error) { return nil, errUnsupported }

// Look returns an error on this system.
func Look(string) ([]limits.KeyStatus, error) { return nil, errUnsupported }
