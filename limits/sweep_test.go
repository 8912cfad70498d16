package limits

import (
	"strconv"
	"testing"
)

// TestStateDropsIdleKeys uses a hundred thousand keys one after the other: few
// are kept, but none that something is held or owed on.
func TestStateDropsIdleKeys(t *testing.T) {
	var s State
	var reply Reply
	limit := Limit{Concurrency: 1, Rate: Rate{Tokens: 1, Per: 1000}, Burst: 1}
	ask := func(id int, name string, now Time, releases ...ClaimID) Cause {
		s.Sync(now, &Batch{Releases: releases, Max: 1, Claims: []Claim{{
			ID: ClaimID(id), Rank: Rank{Deadline: Never}, Needs: []Need{{Key{Host, name}, limit, 1}},
		}}}, &reply)
		return reply.Verdicts[0].Cause
	}
	ask(1, "held", 0)
	s.Sync(0, &Batch{Pauses: []PauseRequest{{Key{Host, "paused"}, 1e12}}}, &reply)
	for id := 2; id < 100_000; id++ {
		if got := ask(id, strconv.Itoa(id), Time(id)*10, ClaimID(id-1)*min(1, ClaimID(id-2))); got != Granted {
			t.Fatalf("claim %d: cause %d, want a grant", id, got)
		}
	}
	if len(s.keys) > 3*manyKeys {
		t.Errorf("%d keys are kept, want at most some thousands", len(s.keys))
	}
	if got := ask(200_000, "held", 1e7); got != Permit {
		t.Errorf("key whose permit is held: cause %d, want it kept", got)
	}
	if got := ask(200_001, "paused", 1e7); got != Paused {
		t.Errorf("key with a pause: cause %d, want it kept", got)
	}
}
