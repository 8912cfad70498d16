//go:build linux || darwin

package folder

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"agentlimit/limits"
)

// Inherit returns a file to be passed on to the command that runs under the claim,
// as in [os/exec.Cmd].ExtraFiles, and then to be closed. The claim counts as long as
// any process has it open, should this one be killed; not if the command closes the
// files it inherits. Once the claim is released, it counts no longer.
func (f *Folder) Inherit(ctx context.Context, id limits.ClaimID) (*os.File, error) {
	if f.isClosed() {
		return nil, os.ErrClosed
	}
	if err := f.dir.enter(ctx); err != nil {
		return nil, err
	}
	defer f.dir.exit()
	file, of := f.dir.held, f.dir.held.Members[f.dir.self]
	at := slices.IndexFunc(of, func(c limits.StoredClaim) bool { return c.ID == id })
	if at < 0 || f.children[id] {
		return nil, fmt.Errorf("claim %d: not held, or inherited already", id)
	}
	file.Members = map[string][]limits.StoredClaim{f.dir.self: of[at : at+1]}
	text, err := encode(file)
	if err != nil {
		return nil, err
	}
	if err := f.dir.write("child.new", text); err != nil {
		return nil, err
	}
	child, err := os.Open(f.dir.file("child.new"))
	if err != nil {
		return nil, err
	}
	if err = tryLock(child); err == nil {
		err = os.Rename(child.Name(), f.childFile(id))
	}
	if err != nil {
		_ = child.Close()
		return nil, err
	}
	f.children[id] = true
	return child, nil
}

func (f *Folder) childFile(id limits.ClaimID) string {
	return f.file("." + strconv.FormatUint(uint64(id), 10) + ".child")
}
