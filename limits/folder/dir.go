//go:build linux || darwin

package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// dir is the folder and this process's way into it.
type dir struct {
	path  string
	warn  func(string)
	look  bool // change nothing
	clock clock
	lock  *os.File
	queue *os.File      // held while waiting for lock, so that nobody passes who waits
	self  string        // this process's member; empty for a look
	held  memberFile    // what it holds, as last stored; guarded by turn
	room  []byte        // that files are read into; guarded by turn
	turn  chan struct{} // full while a goroutine of this process is in a step
}

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }
func (d *dir) members() string         { return d.file("members") }

func openDir(path string, warn func(string), c clock) (*dir, error) {
	if warn == nil {
		warn = func(string) {}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := fit(path); err != nil {
		return nil, err
	}
	d := &dir{path: path, warn: warn, clock: c, turn: make(chan struct{}, 1)}
	return d, d.open(os.O_RDWR | os.O_CREATE)
}

func (d *dir) open(how int) (err error) {
	if d.lock, err = os.OpenFile(d.file("lock"), how, 0o600); err != nil {
		return err
	}
	if d.queue, err = os.OpenFile(d.file("queue"), how, 0o600); err != nil {
		_ = d.lock.Close()
	}
	return err
}

// fit reports why a folder cannot be used.
func fit(path string) error {
	var sys unix.Statfs_t
	if err := unix.Statfs(path, &sys); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	if name := network(&sys); name != "" {
		return fmt.Errorf("is on %s, whose locks may not reach other machines: use a folder of this machine, or redis", name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write to it (mode %04o): want 0700", mode)
	}
	return nil
}

// ring wakes members, by touching their locks: both times, for the kernel calls one
// alone something else. It may fail for one that has left.
func (d *dir) ring(members []string) {
	now := time.Now()
	for _, name := range members {
		_ = os.Chtimes(filepath.Join(d.members(), name+".lock"), now, now)
	}
}

// step runs do with the state, and with the folder to itself. What do has changed is
// gone after it, unless it was stored.
func (d *dir) step(ctx context.Context, do func(*state) error) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.exit()
	st, err := d.load()
	if err != nil {
		return err
	}
	return do(st)
}

// enter waits until this goroutine has the folder to itself.
func (d *dir) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	how := unix.LOCK_EX
	if d.look {
		how = unix.LOCK_SH
	}
	if d.acquire(how|unix.LOCK_NB) == nil {
		return d.same()
	}
	got := make(chan error, 1)
	go func() { got <- d.acquire(how) }()
	slow := time.NewTimer(2 * time.Second)
	defer slow.Stop()
	for {
		select {
		case err := <-got:
			if err != nil {
				<-d.turn
				return os.NewSyscallError("flock", err)
			}
			return d.same()
		case <-slow.C:
			d.warn(d.path + ": a process that may be stopped keeps its lock: waiting")
		case <-ctx.Done():
			go func() { // the lock will come; it is passed on
				if <-got == nil {
					d.exit()
					return
				}
				<-d.turn
			}()
			return ctx.Err()
		}
	}
}

// acquire takes the lock. The kernel gives it to anybody who asks in time, and that
// would be whoever has just let go of it: so one at a time waits for it, and the
// others for that one.
func (d *dir) acquire(how int) error {
	queue := int(d.queue.Fd())
	if err := flock(queue, unix.LOCK_EX|how&unix.LOCK_NB); err != nil {
		return err
	}
	err := flock(int(d.lock.Fd()), how)
	return errors.Join(err, flock(queue, unix.LOCK_UN))
}

func (d *dir) exit() {
	_ = flock(int(d.lock.Fd()), unix.LOCK_UN) // it is held, and open
	<-d.turn
}

var errRemoved = errors.New("the coordinator's folder, or a part of it, was removed while this run used it")

// same wants the lock to be the one that others find.
func (d *dir) same() error {
	ours, err := d.lock.Stat()
	if err == nil {
		var theirs os.FileInfo
		if theirs, err = os.Stat(d.lock.Name()); err == nil && os.SameFile(ours, theirs) {
			return nil
		}
	}
	d.exit()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return errRemoved
	}
	return err
}

// close lets go of the folder, for good. If a goroutine still waits for the lock,
// it goes with the process.
func (d *dir) close() {
	select {
	case d.turn <- struct{}{}:
		_ = d.lock.Close()
		_ = d.queue.Close()
	default:
	}
}
