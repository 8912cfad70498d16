package limits_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

// stored writes a state down, member by member, and loads it into another.
func stored(t *testing.T, s *limits.State, members []string, now limits.Time) *limits.State {
	t.Helper()
	through := func(in limits.Stored) *limits.Stored {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out limits.Stored
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		return &out
	}
	shared := through(s.Shared(now))
	waiting := &limits.Stored{Members: shared.Members}
	shared.Members = nil
	var next limits.State
	next.Load(shared, now)
	for _, m := range members {
		next.Load(through(s.Held(m)), now)
	}
	next.Load(waiting, now)
	return &next
}

// TestAStoredStateDecidesAlike has two twins live through the same at random, one of
// which is stored and loaded after each step.
func TestAStoredStateDecidesAlike(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(seed)
		kept, rng := &w.state, rand.New(rand.NewPCG(seed, 3))
		twin := new(limits.State)
		var members []string
		for i := range w.waiting {
			members = append(members, strconv.Itoa(i))
		}
		for step := range 200 {
			w.now += limits.Time(rng.IntN(80)) * ms
			i := rng.IntN(len(members))
			batch := w.batch(t, i)
			if rng.IntN(20) == 0 {
				batch.Pauses = append(batch.Pauses, limits.PauseRequest{Key: host("1"), Until: w.now + 300*ms})
			}
			var a, b limits.Reply
			if err := kept.SyncMember(members[i], w.now, &batch, &a); err != nil {
				t.Fatal(err)
			}
			wakes := slices.Sorted(slices.Values(kept.Wakes()))
			if err := twin.SyncMember(members[i], w.now, &batch, &b); err != nil {
				t.Fatal(err)
			}
			twinWakes := slices.Sorted(slices.Values(twin.Wakes()))
			if diff := cmp.Diff(a.Verdicts, b.Verdicts) + cmp.Diff(wakes, twinWakes); diff != "" {
				t.Fatalf("seed %d, step %d: (-kept in memory +stored):\n%s", seed, step, diff)
			}
			w.take(t, i, &batch, a.Verdicts)
			twin = stored(t, twin, members, w.now)
			if diff := cmp.Diff(statuses(kept, w.now), statuses(twin, w.now)); diff != "" {
				t.Fatalf("seed %d, step %d: status (-kept in memory +stored):\n%s", seed, step, diff)
			}
		}
	}
}

// statuses is of the keys in use: of others one of the twins may know less.
func statuses(s *limits.State, now limits.Time) []limits.KeyStatus {
	all := []limits.KeyStatus{}
	for _, k := range s.Status(now) {
		if k.Members = nil; k.InUse > 0 { // waiting claims that nothing is kept for are not stored
			all = append(all, k)
		}
	}
	return all
}

func TestStatus(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 2}
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, limit, host("h")))})
	say(t, &s, "b", 0, limits.Batch{
		Claims: claims(since(claim(1, 1, limit, host("h")), 5)),
		Pauses: []limits.PauseRequest{{Key: limits.PairKey("h", "x"), Until: second}},
	})
	want := []limits.KeyStatus{
		{Key: host("h"), Limit: limit, InUse: 1, Bucket: limits.Bucket{Level: 1e6}, Members: []limits.MemberStatus{
			{Member: "a", InUse: 1}, {Member: "b", Waiting: 1},
		}},
		{Key: limits.PairKey("h", "x"), Pause: second},
	}
	if diff := cmp.Diff(want, s.Status(0)); diff != "" {
		t.Errorf("Status (-want +got):\n%s", diff)
	}
}
