//go:build linux

package folder

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// machine has a clock that a test moves.
type machine struct {
	boot    string
	elapsed limits.Time
	wall    limits.Time
}

func (m *machine) clock() clock {
	return clock{
		boot:    m.boot,
		elapsed: func() limits.Time { return m.elapsed },
		wall:    func() limits.Time { return m.wall },
		start:   new(atomic.Int64),
	}
}

// join opens the folder on the machine; what is warned of is kept.
func (m *machine) join(t *testing.T, path string, warned *[]string) *Folder {
	t.Helper()
	f, err := open(path, Options{Warn: func(s string) { *warned = append(*warned, s) }}, m.clock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

const second, hour limits.Time = 1e6, 3600e6

// TestClockSteps spends a bucket and steps clocks: after it, cost tokens are there
// and no more.
func TestClockSteps(t *testing.T) {
	start := limits.Time(1.8e15)
	tests := []struct {
		name    string
		step    func(m *machine)
		reopen  bool
		tokens  int64
		elapsed limits.Time // of the shared clock
	}{
		{"time that passes counts", func(m *machine) { m.elapsed += 3 * second }, false, 3, 3 * second},
		{"the wall clock put forward mints nothing", func(m *machine) { m.wall += hour }, false, 0, 0},
		{"nor for one who comes then", func(m *machine) { m.wall += hour }, true, 0, 0},
		{"the wall clock put back loses nothing", func(m *machine) { m.wall -= hour; m.elapsed += 2 * second }, true, 2, 2 * second},
		{"after a restart the wall clock counts", func(m *machine) {
			*m = machine{"second", 20 * second, start + 4*second}
		}, true, 4, 4 * second},
		{"a restart long after fills the bucket and no more", func(m *machine) {
			*m = machine{"second", second, start + hour}
		}, true, 10, hour},
		{"after a restart with the wall clock put back time goes on from where it was", func(m *machine) {
			*m = machine{"second", second, start - hour}
		}, true, 0, 0},
	}
	for _, tt := range tests {
		path, m, warned := t.TempDir(), &machine{"first", 100 * second, start}, []string(nil)
		f := m.join(t, path, &warned)
		if got := ask(t, f, tokenClaim(1, 10)); got != limits.Granted {
			t.Fatalf("%s: cause %d for a full bucket", tt.name, got)
		}
		if err := f.Sync(context.Background(), &limits.Batch{Releases: []limits.ClaimID{1}}, new(limits.Reply)); err != nil {
			t.Fatal(err)
		}
		before := f.Now()
		if tt.reopen {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		tt.step(m)
		if tt.reopen {
			f = m.join(t, path, &warned)
		}
		if tt.tokens > 0 && ask(t, f, tokenClaim(2, tt.tokens)) != limits.Granted {
			t.Errorf("%s: %d tokens are not there", tt.name, tt.tokens)
		}
		if tt.tokens < 10 && ask(t, f, tokenClaim(3, 1)) != limits.Tokens {
			t.Errorf("%s: more than %d tokens are there", tt.name, tt.tokens)
		}
		if elapsed := f.Now() - before; elapsed != tt.elapsed || warned != nil {
			t.Errorf("%s: the clock went on by %d µs, want %d; warned of %q", tt.name, elapsed, tt.elapsed, warned)
		}
	}
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

// limitFiles keeps files from growing over the size: the system takes a part of what
// is written, and refuses the rest, as on a full disk.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
		signal.Reset(unix.SIGXFSZ)
	}
}

// TestAFullDisk grants nothing, at whatever file it strikes, and what is said again
// counts once.
func TestAFullDisk(t *testing.T) {
	for size := uint64(0); size < 800; size += 50 {
		path, m, warned := t.TempDir(), &machine{"first", 100 * second, 1.8e15}, []string(nil)
		f := m.join(t, path, &warned)
		ask(t, f, tokenClaim(1, 5))
		batch := &limits.Batch{Max: 9, Refunds: []limits.ClaimID{1}, Claims: []limits.Claim{tokenClaim(2, 7)}}
		var reply limits.Reply
		lift := limitFiles(t, size)
		err := f.Sync(context.Background(), batch, &reply)
		lift()
		if err != nil && !errors.Is(err, unix.EFBIG) {
			t.Fatalf("files of at most %d bytes: %v", size, err)
		}
		if (size < 200 && err == nil) || (size >= 700 && err != nil) {
			t.Errorf("files of at most %d bytes: %v", size, err)
		}
		if err != nil {
			other := m.join(t, path, &warned)
			if got := ask(t, other, tokenClaim(1, 6)); got != limits.Tokens {
				t.Errorf("files of at most %d bytes: cause %d for another, want nothing refunded yet", size, got)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := f.Sync(context.Background(), batch, &reply); err != nil || reply.Verdicts[0].Cause != limits.Granted {
				t.Errorf("said again: %v, %+v, want a grant", err, reply.Verdicts)
			}
		}
		if got := []limits.Cause{ask(t, f, tokenClaim(3, 3)), ask(t, f, tokenClaim(4, 0))}; got[0] != limits.Granted || got[1] != limits.Permit {
			t.Errorf("files of at most %d bytes: causes %d, want three tokens and one permit left", size, got)
		}
	}
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
		if f, err := Open(path, Options{}); err == nil {
			t.Errorf("%s: Open(%q) = %v, want an error", name, path, f)
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
