//go:build linux || darwin

package folder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentlimit/limits"
)

// tokenClaim costs so many tokens of a bucket of ten, refilled with one a second,
// and one of two permits.
func tokenClaim(id limits.ClaimID, cost int64) limits.Claim {
	return limits.Claim{ID: id, Rank: limits.Rank{Deadline: limits.Never}, Needs: []limits.Need{{
		Key:   limits.Key{Kind: limits.Host, Name: "h"},
		Limit: limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 10}, Cost: cost,
	}}}
}

// TestALostSnapshot loses buckets and pauses, but no permit.
func TestALostSnapshot(t *testing.T) {
	tests := []struct {
		name   string
		damage func(path string) error
		warn   string
	}{
		{"gone", os.Remove, "is gone"},
		{"empty, as after a power cut", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "is damaged"},
		{"cut off", func(path string) error { return os.Truncate(path, 50) }, "is damaged"},
		{"rubbish", func(path string) error { return os.WriteFile(path, make([]byte, 1000), 0o600) }, "is damaged"},
	}
	for _, tt := range tests {
		path, m, warned := t.TempDir(), &machine{"first", 100 * second, 1.8e15}, []string(nil)
		a := m.join(t, path, &warned)
		ask(t, a, tokenClaim(1, 1))
		if err := tt.damage(filepath.Join(path, "state.json")); err != nil {
			t.Fatal(err)
		}
		if _, err := Look(path); tt.warn == "is damaged" && (err == nil || !strings.Contains(err.Error(), "state.json is damaged: whoever")) {
			t.Errorf("%s: Look = %v, want that it is damaged", tt.name, err)
		}
		m.wall += hour // while the others still know the time
		b := m.join(t, path, &warned)
		if len(warned) != 1 || !strings.Contains(warned[0], tt.warn) {
			t.Errorf("%s: warned of %q, want once that it %s", tt.name, warned, tt.warn)
		}
		if a.Now() != b.Now() {
			t.Errorf("%s: clocks at %d and %d", tt.name, a.Now(), b.Now())
		}
		if got := ask(t, b, tokenClaim(1, 1)); got != limits.Tokens {
			t.Errorf("%s: cause %d, want an empty bucket", tt.name, got)
		}
		m.elapsed += 5 * second
		if got := ask(t, b, tokenClaim(1, 5)); got != limits.Granted {
			t.Errorf("%s: five seconds later: cause %d, want a grant of five tokens", tt.name, got)
		}
		if got := ask(t, b, tokenClaim(2, 0)); got != limits.Permit {
			t.Errorf("%s: cause %d, want a's permit and b's in use", tt.name, got)
		}
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	path, warned := t.TempDir(), []string(nil)
	f := new(machine).join(t, path, &warned)
	if err := os.WriteFile(filepath.Join(path, "state.json"), []byte(`{"Version": 2, "Future": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := f.Sync(context.Background(), &limits.Batch{}, new(limits.Reply))
	if err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("Sync with a snapshot of version 2 = %v, want it refused", err)
	}
}

// TestAFullDisk grants nothing, at whatever file it strikes, and what is said again
// counts once. A limit on the size of files stands for the disk, so this is a process
// of its own.
func TestAFullDisk(t *testing.T) { start(t, "full", t.TempDir()).end(t) }

func full(path string) error {
	for size := uint64(0); size < 800; size += 50 {
		if err := fullAt(size, filepath.Join(path, strconv.FormatUint(size, 10))); err != nil {
			return fmt.Errorf("files of at most %d bytes: %w", size, err)
		}
	}
	return nil
}

// fullAt has two members, one of which says a batch when files cannot grow.
func fullAt(size uint64, path string) error {
	m := &machine{"first", 100 * second, 1.8e15}
	f, err := open(context.Background(), path, Options{}, m.clock())
	if err != nil {
		return err
	}
	other, err := open(context.Background(), path, Options{}, m.clock())
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(f.Close(), other.Close()) }()
	expect := func(f *Folder, what string, batch limits.Batch, want ...limits.Cause) error {
		var reply limits.Reply
		batch.Max = 9
		err := f.Sync(context.Background(), &batch, &reply)
		for i, v := range reply.Verdicts {
			if err == nil && v.Cause != want[i] {
				err = fmt.Errorf("%s: %+v, want cause %d", what, v, want[i])
			}
		}
		return err
	}
	say := func(claims ...limits.Claim) limits.Batch { return limits.Batch{Claims: claims} }
	if err := expect(f, "at first", say(tokenClaim(1, 5)), limits.Granted); err != nil {
		return err
	}
	again := limits.Batch{Refunds: []limits.ClaimID{1}, Claims: []limits.Claim{tokenClaim(2, 7)}}
	err = limited(size, func() error { return expect(f, "on a full disk", again, limits.Granted) })
	switch {
	case err == nil && size < 200, err != nil && (size >= 700 || !errors.Is(err, unix.EFBIG)):
		return fmt.Errorf("on a full disk: %v", err)
	case err != nil:
		if err := expect(other, "nothing was refunded yet", say(tokenClaim(1, 6)), limits.Tokens); err != nil {
			return err
		}
		if err := expect(other, "one that gives up", limits.Batch{Withdrawn: []limits.ClaimID{1}}); err != nil {
			return err
		}
		if err := expect(f, "said again", again, limits.Granted); err != nil {
			return err
		}
	}
	return expect(f, "what is left", say(tokenClaim(3, 3), tokenClaim(4, 0)), limits.Granted, limits.Permit)
}

// limited runs do while no file can grow over the size: the system takes a part of
// what is written, and refuses the rest.
func limited(size uint64, do func() error) error {
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		return err
	}
	err := do()
	if lifted := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); lifted != nil {
		return lifted
	}
	return err
}

// TestAGrantThatWasNotPaid stands in a member's file if a step failed between the two
// that it stores, and is no grant.
func TestAGrantThatWasNotPaid(t *testing.T) {
	path := t.TempDir()
	f := mustOpen(t, path)
	var phantom limits.State
	batch := limits.Batch{Max: 1, Claims: []limits.Claim{tokenClaim(1, 6)}}
	if err := phantom.SyncMember(f.dir.self, f.Now(), &batch, new(limits.Reply)); err != nil {
		t.Fatal(err)
	}
	text, err := encode(memberFile{Stored: phantom.Held(f.dir.self)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.file(".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, f, tokenClaim(1, 6)); got != limits.Granted {
		t.Errorf("cause %d, want a grant", got)
	}
	if got := ask(t, f, tokenClaim(2, 5)); got != limits.Tokens {
		t.Errorf("cause %d, want the first claim paid", got)
	}
}

func TestARemovedFolderGrantsNothing(t *testing.T) {
	for _, gone := range []string{"", "lock", "members"} {
		path := filepath.Join(t.TempDir(), "coordinator")
		f := mustOpen(t, path)
		if err := os.RemoveAll(filepath.Join(path, gone)); err != nil {
			t.Fatal(err)
		}
		err := f.Sync(context.Background(), &limits.Batch{Max: 1, Claims: []limits.Claim{onlyClaim(1)}}, new(limits.Reply))
		if err == nil {
			t.Errorf("without %q: Sync succeeded", gone)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a folder that others may write to": open, "a file": file, "no disk": "/proc/agentlimit"} {
		if f, err := Open(context.Background(), path, Options{}); err == nil {
			t.Errorf("%s: Open(%q) = %v, want an error", name, path, f)
		}
	}
}

// TestRefusedFoldersAreLetGo has the second file that is opened be a folder.
func TestRefusedFoldersAreLetGo(t *testing.T) {
	path := t.TempDir()
	if err := os.Mkdir(filepath.Join(path, "queue"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, Options{}); err == nil {
		t.Error("Open succeeded")
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == filepath.Join(path, "lock") {
			t.Error("the lock is still open")
		}
	}
}

func TestTheFolderIsForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "agentlimit")
	mustOpen(t, path)
	for name, want := range map[string]os.FileMode{"": 0o700, "members": 0o700, "lock": 0o600, "state.json": 0o600} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %04o, want %04o", name, got, want)
		}
	}
}

// TestALockThatDoesNotCome leaves whoever waits free to give up, and to ask again.
func TestALockThatDoesNotCome(t *testing.T) {
	path := t.TempDir()
	f := mustOpen(t, path)
	lock, err := os.Open(filepath.Join(path, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := tryLock(lock); err != nil {
		t.Fatal(err)
	}
	batch := &limits.Batch{Max: 1, Claims: []limits.Claim{onlyClaim(1)}}
	for range 2 { // the second finds the first still waiting
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if err := f.Sync(ctx, batch, new(limits.Reply)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Sync of a locked folder = %v, want %v", err, context.DeadlineExceeded)
		}
		if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Open of a locked folder = %v, want %v", err, context.DeadlineExceeded)
		}
		cancel()
	}
	if err := flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, f, onlyClaim(1)); got != limits.Granted {
		t.Errorf("when the lock is free: cause %d, want a grant", got)
	}
	if got := ask(t, mustOpen(t, path), onlyClaim(1)); got != limits.Permit {
		t.Errorf("another member: cause %d, want the permit in use", got)
	}
}

// TestTheBellIsSoonerThanThePoll, which comes every 200 ms.
func TestTheBellIsSoonerThanThePoll(t *testing.T) {
	path := t.TempDir()
	a, b := mustOpen(t, path), mustOpen(t, path)
	best := time.Hour
	for id := limits.ClaimID(1); id <= 5; id++ {
		ask(t, a, onlyClaim(id))
		ask(t, b, onlyClaim(id))
		began := time.Now()
		if err := a.Sync(context.Background(), &limits.Batch{Releases: []limits.ClaimID{id}}, new(limits.Reply)); err != nil {
			t.Fatal(err)
		}
		comes(t, b, onlyClaim(id))
		best = min(best, time.Since(began))
		if err := b.Sync(context.Background(), &limits.Batch{Releases: []limits.ClaimID{id}}, new(limits.Reply)); err != nil {
			t.Fatal(err)
		}
	}
	if best > 150*time.Millisecond {
		t.Errorf("at best a permit was handed on in %v", best)
	}
}
