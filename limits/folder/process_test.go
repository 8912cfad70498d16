//go:build linux || darwin

package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

// look returns what the folder says, which must hold at any time.
func look(t *testing.T, path string) []limits.KeyStatus {
	t.Helper()
	all, err := Look(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		sum := int64(0)
		for _, m := range k.Members {
			sum += m.InUse
		}
		if sum != k.InUse || k.Limit.Concurrency > 0 && k.InUse > k.Limit.Concurrency {
			t.Errorf("%v: %d in use of %d, %d of them by members", k.Key, k.InUse, k.Limit.Concurrency, sum)
		}
	}
	return all
}

// files lists the folder.
func files(t *testing.T, path string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(path, name); err == nil && !entry.IsDir() {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestKills has eight processes make calls, and kills them at random moments: no
// limit is ever passed, the dead hold nothing, nothing is left over.
func TestKills(t *testing.T) {
	path, s := t.TempDir(), newServer(t)
	kills, seed := 10, uint64(time.Now().UnixNano())
	if os.Getenv("AGENTLIMIT_LONG") != "" {
		kills = 100
	}
	if fixed, err := strconv.ParseUint(os.Getenv("AGENTLIMIT_SEED"), 10, 64); err == nil {
		seed = fixed
	}
	t.Logf("AGENTLIMIT_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var running []*process
	for range 8 {
		running = append(running, start(t, "caller", path, serverVar+"="+s.Addr().String()))
	}
	mustOpen(t, path).Close() // so that there is something to look at
	for range kills {
		<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
		at := rng.IntN(len(running))
		victim := running[at]
		s.killed(victim.Process.Pid)
		victim.kill(t)
		for _, k := range look(t, path) {
			for _, m := range k.Members {
				if strings.HasPrefix(m.Member, strconv.Itoa(victim.Process.Pid)+"-") {
					t.Errorf("%v: %+v was killed", k.Key, m)
				}
			}
		}
		running[at] = start(t, "caller", path, serverVar+"="+s.Addr().String())
	}
	for _, p := range running {
		p.end(t)
	}
	for _, k := range look(t, path) {
		if k.InUse > 0 || len(k.Members) > 0 {
			t.Errorf("when all have ended: %+v", k)
		}
	}
	s.checkRate(t)
	mustOpen(t, path).Close() // takes away what the last ones left
	for _, name := range files(t, path) {
		if !slices.Contains([]string{"lock", "queue", "state.json", "state.new", "held.new"}, name) {
			t.Errorf("%s is left over", name)
		}
	}
	if info, err := os.Stat(filepath.Join(path, "state.json")); err != nil || info.Size() > 2000 {
		t.Errorf("state.json has grown: %v, %v", info.Size(), err)
	}
	t.Logf("%d calls", s.calls)
}

// ask asks for the claim once.
func ask(t *testing.T, f *Folder, c limits.Claim) limits.Cause {
	t.Helper()
	var reply limits.Reply
	if err := f.Sync(context.Background(), &limits.Batch{Max: 9, Claims: []limits.Claim{c}}, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Verdicts[0].Cause
}

// comes asks for the claim until it is granted.
func comes(t *testing.T, f *Folder, c limits.Claim) {
	t.Helper()
	late := make(chan struct{})
	defer time.AfterFunc(10*time.Second, func() { close(late) }).Stop()
	granted, err := grant(f, late, &limits.Batch{Max: 9, Claims: []limits.Claim{c}}, new(limits.Reply))
	if err != nil || !granted {
		t.Fatalf("a claim is not granted: %v", err)
	}
}

// TestAChildOutlivesItsKilledParent has the permit counted until the child is gone.
func TestAChildOutlivesItsKilledParent(t *testing.T) {
	path := t.TempDir()
	parent := start(t, "holder", path)
	pid, _ := strconv.Atoi(strings.TrimPrefix(parent.says(t), "child "))
	f := mustOpen(t, path)
	if got := ask(t, f, onlyClaim(1)); got != limits.Permit {
		t.Errorf("while both live: cause %d, want the permit in use", got)
	}
	if in := look(t, path)[0].InUse; in != 1 {
		t.Errorf("while both live: %d in use, want the claim counted once", in)
	}
	parent.kill(t)
	if got := ask(t, f, onlyClaim(1)); got != limits.Permit {
		t.Errorf("when the parent is gone: cause %d, want the permit in use", got)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	comes(t, f, onlyClaim(1))
	want := []string{"held.new", "lock", "members/" + f.dir.self + ".json", "members/" + f.dir.self + ".lock", "queue", "state.json", "state.new"}
	if diff := cmp.Diff(want, files(t, path)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestWhatACommandLeavesBehindDoesNotCount has the claim end before its child does.
func TestWhatACommandLeavesBehindDoesNotCount(t *testing.T) {
	path := t.TempDir()
	parent := start(t, "holder", path)
	pid, _ := strconv.Atoi(strings.TrimPrefix(parent.says(t), "child "))
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	f := mustOpen(t, path)
	if _, err := fmt.Fprintln(parent.stdin, "release"); err != nil {
		t.Fatal(err)
	}
	if got := parent.says(t); got != "released" {
		t.Fatalf("the parent says %q", got)
	}
	if got := ask(t, f, onlyClaim(1)); got != limits.Granted {
		t.Errorf("after the release: cause %d, want a grant", got)
	}
}

// TestAStoppedHolderKeepsItsPermit, for as long as it is stopped.
func TestAStoppedHolderKeepsItsPermit(t *testing.T) {
	path := t.TempDir()
	parent := start(t, "holder", path)
	pid, _ := strconv.Atoi(strings.TrimPrefix(parent.says(t), "child "))
	parent.signal(t, syscall.SIGSTOP)
	f := mustOpen(t, path)
	if got := ask(t, f, onlyClaim(1)); got != limits.Permit {
		t.Errorf("while the holder is stopped: cause %d, want the permit in use", got)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	parent.kill(t)
	comes(t, f, onlyClaim(1))
	if took := time.Since(began); took > time.Second {
		t.Errorf("the permit of a killed process came after %v, want less than a second", took)
	}
}

func TestInheritWantsAHeldClaim(t *testing.T) {
	f := mustOpen(t, t.TempDir())
	if lock, err := f.Inherit(context.Background(), 1); err == nil {
		t.Errorf("Inherit of nothing = %v, want an error", lock)
	}
	ask(t, f, onlyClaim(1))
	lock, err := f.Inherit(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if lock, err := f.Inherit(context.Background(), 1); err == nil {
		t.Errorf("a second Inherit = %v, want an error", lock)
	}
}

// race starts n processes, and returns in order how much each did within the span.
func race(t testing.TB, name, path string, n int, span time.Duration) (counts []int) {
	t.Helper()
	var running []*process
	for range n {
		running = append(running, start(t, name, path))
	}
	for _, p := range running {
		p.says(t)
	}
	for _, p := range running { // all have started
		if _, err := fmt.Fprintln(p.stdin, "go"); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(span)
	for _, p := range running {
		_ = p.stdin.Close()
	}
	for _, p := range running {
		n, err := strconv.Atoi(p.says(t))
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
		p.end(t)
	}
	slices.Sort(counts)
	return counts
}

// TestFair has sixteen processes want the same two permits.
func TestFair(t *testing.T) {
	path, span := t.TempDir(), 2*time.Second
	if os.Getenv("AGENTLIMIT_LONG") != "" {
		span = 10 * time.Second
	}
	counts := race(t, "racer", path, 16, span)
	t.Logf("calls by process: %v", counts)
	if counts[0]*2 < counts[15] {
		t.Errorf("calls by process: %v, want the slowest to make at least half as many as the fastest", counts)
	}
}

func TestLookAtNothing(t *testing.T) {
	if _, err := Look(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Look at no folder = %v, want %v", err, fs.ErrNotExist)
	}
}
