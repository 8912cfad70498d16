//go:build linux || darwin

package folder

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agentlimit/limits"
)

// poll is how often a member that waits looks by itself, should it not be woken.
// The state wants a look within 300 ms.
const poll = 200 * time.Millisecond

// Folder is one process's share of the folder. It is safe for use by many
// goroutines.
type Folder struct {
	dir *dir
	own *os.File // members/ID.lock

	changed chan struct{}
	waiting atomic.Bool // something is kept for a claim of this member
	closed  chan struct{}
	once    sync.Once
	bell    *os.File // nil without file notification

	// What follows is guarded by dir.turn.
	heldText []byte                  // of members/ID.json; nil if not known
	children map[limits.ClaimID]bool // that have a lock of their own
}

// Open makes this process a member of the folder, which is created if it is not
// there. A folder on a network file system, or one that others may write to, is
// refused. Open waits as long as another process holds the folder's lock, which is
// far less than a millisecond unless that one is stopped, and ctx is not done.
func Open(ctx context.Context, path string, opts Options) (*Folder, error) {
	c, err := systemClock()
	if err != nil {
		return nil, fmt.Errorf("open coordinator folder %s: %w", path, err)
	}
	return open(ctx, path, opts, c)
}

func open(ctx context.Context, path string, opts Options, c clock) (*Folder, error) {
	d, err := openDir(path, opts.Warn, c)
	if err != nil {
		return nil, fmt.Errorf("open coordinator folder %s: %w", path, err)
	}
	d.self = newName()
	f := &Folder{
		dir: d, changed: make(chan struct{}, 1), closed: make(chan struct{}),
		children: make(map[limits.ClaimID]bool),
	}
	if err := f.join(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open coordinator folder %s: %w", path, err), f.Close())
	}
	if f.bell, err = newBell(d.members(), f.file(".lock")); err == nil {
		go f.listen()
	}
	go f.poll()
	return f, nil
}

// newName names a member: its process, and what no other of that number had.
func newName() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(id[:])
}

// file returns the path of one of the member's own files.
func (f *Folder) file(suffix string) string { return filepath.Join(f.dir.members(), f.dir.self+suffix) }

// join makes the member's files. Nobody sees them before they are locked.
func (f *Folder) join(ctx context.Context) error {
	return f.dir.step(ctx, func(st *state) error {
		own, err := os.OpenFile(f.file(".lock"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f.own = own
		if err := tryLock(own); err != nil {
			return err
		}
		return f.store(st)
	})
}

// Sync decides the batch in one step. On error, nothing has changed for this
// process. It waits for other processes only while ctx is not done.
func (f *Folder) Sync(ctx context.Context, batch *limits.Batch, reply *limits.Reply) error {
	if f.isClosed() {
		return os.ErrClosed
	}
	var wakes []string
	err := f.dir.step(ctx, func(st *state) error {
		if !st.live[f.dir.self] {
			return errRemoved
		}
		if err := st.SyncMember(f.dir.self, st.now, batch, reply); err != nil {
			return err
		}
		wakes = st.Wakes()
		if err := f.store(st); err != nil {
			return err
		}
		f.drop(batch.Releases)
		f.drop(batch.Refunds)
		return nil
	})
	if err != nil {
		return err
	}
	f.dir.ring(wakes)
	return nil
}

// store writes down what the member holds and what all share. Both are written
// before either replaces what was there, and what it holds is replaced first: a step
// that fails in between has granted nothing, paid nothing and refunded nothing.
func (f *Folder) store(st *state) error {
	held := memberFile{st.snapshot.Clock, st.Held(f.dir.self)}
	text, err := encode(held)
	if err != nil {
		return err
	}
	changed := string(text) != string(f.heldText)
	if changed {
		if err := f.dir.write("held.new", text); err != nil {
			return err
		}
	}
	shared := st.Shared(st.now)
	if err := f.dir.writeSnapshot(st, shared); err != nil {
		return err
	}
	if changed {
		if err := f.dir.replace("held.new", f.file(".json")); err != nil {
			return err
		}
		f.heldText = nil // until the step is done
	}
	if err := f.dir.replaceSnapshot(); err != nil {
		return err
	}
	f.dir.held, f.heldText = held, text
	f.waiting.Store(len(shared.Members[f.dir.self]) > 0)
	return nil
}

// drop removes the locks of claims that have ended: what is left of their commands
// counts no longer.
func (f *Folder) drop(ids []limits.ClaimID) {
	for _, id := range ids {
		if f.children[id] {
			delete(f.children, id)
			_ = os.Remove(f.childFile(id)) // gone already, or counted until its end
		}
	}
}

// Changed receives a value when this member was woken, when a member has left or
// died, and every so often while a claim waits.
func (f *Folder) Changed() <-chan struct{} { return f.changed }

// Now reads the clock that all members share.
func (f *Folder) Now() limits.Time { return f.dir.clock.now() }

// Close gives back what the member holds, but for claims whose commands still run,
// and wakes the others. The second Close does nothing.
func (f *Folder) Close() (err error) {
	f.once.Do(func() {
		close(f.closed)
		if f.own != nil {
			err = f.leave()
		}
		if f.bell != nil {
			_ = f.bell.Close()
		}
		f.dir.close()
	})
	return err
}

func (f *Folder) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// leave takes the member's files away. If it cannot, the kernel lets go of their
// locks, and another process takes them away.
func (f *Folder) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := f.dir.step(ctx, func(st *state) error {
		st.Leave(f.dir.self, st.now)
		err := f.dir.writeSnapshot(st, st.Shared(st.now))
		if err == nil {
			err = f.dir.replaceSnapshot()
		}
		_, _ = os.Remove(f.file(".lock")), os.Remove(f.file(".json"))
		return err
	})
	if errors.Is(err, errRemoved) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, f.own.Close())
}

// poll looks for what no wake-up came for.
func (f *Folder) poll() {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.signal()
		case <-f.closed:
			return
		}
	}
}

// listen waits for the bell.
func (f *Folder) listen() {
	var events [4096]byte
	for {
		if _, err := f.bell.Read(events[:]); err != nil {
			return // closed; if not, there is still the poll
		}
		f.signal()
	}
}

func (f *Folder) signal() {
	if !f.waiting.Load() {
		return
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}
