//go:build unix

package redis

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

// claimOn builds a claim without a deadline: one token, if there are any, of each key.
func claimOn(id int, limit limits.Limit, keys ...string) limits.Claim {
	c := limits.Claim{ID: limits.ClaimID(id), Rank: limits.Rank{Deadline: limits.Never, Seq: int64(id)}}
	for _, name := range keys {
		key, err := limits.ParseKey(name)
		if err != nil {
			panic(err)
		}
		c.Needs = append(c.Needs, limits.Need{Key: key, Limit: limit, Cost: min(1, limit.Burst)})
	}
	return c
}

// say carries a batch, which must not fail, and returns the causes of its verdicts.
func say(t testing.TB, r *Redis, batch limits.Batch) []limits.Cause {
	t.Helper()
	if batch.Max == 0 {
		batch.Max = 100
	}
	var reply limits.Reply
	if err := r.Sync(context.Background(), &batch, &reply); err != nil {
		t.Fatalf("Sync(%+v) = %v", batch, err)
	}
	causes := []limits.Cause{}
	for _, v := range reply.Verdicts {
		causes = append(causes, v.Cause)
	}
	return causes
}

func ask(t testing.TB, r *Redis, claims ...limits.Claim) []limits.Cause {
	t.Helper()
	return say(t, r, limits.Batch{Claims: claims})
}

func expect(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLook(t *testing.T) {
	s := newServer(t)
	const name = "[look]*" // which SCAN must not take for a pattern
	s.aged(name, 1)
	url := s.url(name)
	a, b := mustOpen(t, url, usual), mustOpen(t, url, usual)
	if b.name < a.name {
		a, b = b, a
	}
	limit := limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 3600e6}, Burst: 5}
	ask(t, a, claimOn(1, limit, "host/h", "account/x"), claimOn(2, limit, "host/h"))
	waits := claimOn(1, limit, "host/h")
	ask(t, b, waits)
	until := b.Now().Add(1e9)
	say(t, b, limits.Batch{Pauses: []limits.PauseRequest{{Key: limits.PairKey("h", "x"), Until: until}}})

	got, err := Look(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Bucket = limits.Bucket{Level: got[i].Bucket.Level / 3600e6}
	}
	expect(t, "what is seen", []limits.KeyStatus{
		{Key: waits.Needs[0].Key, Limit: limit, InUse: 2, Bucket: limits.Bucket{Level: 3}, Members: []limits.MemberStatus{
			{Member: a.name, InUse: 2}, {Member: b.name, Waiting: 1},
		}},
		{Key: limits.Key{Kind: limits.Account, Name: "x"}, Limit: limit, InUse: 1, Bucket: limits.Bucket{Level: 4}, Members: []limits.MemberStatus{
			{Member: a.name, InUse: 1},
		}},
		{Key: limits.PairKey("h", "x"), Pause: until},
	}, got)
	if got, err := Look(context.Background(), s.url("nobody")); err != nil || len(got) > 0 {
		t.Errorf("Look at an empty namespace = %v, %v", got, err)
	}
}
