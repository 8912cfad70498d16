package limits_test

import (
	"testing"

	"agentlimit/limits"
)

const second limits.Time = 1e6

func host(name string) limits.Key    { return limits.Key{Kind: limits.Host, Name: name} }
func account(name string) limits.Key { return limits.Key{Kind: limits.Account, Name: name} }

// claim builds a claim of rank seq on keys, each at the given limit and cost 1.
func claim(id, seq int, limit limits.Limit, keys ...limits.Key) limits.Claim {
	c := limits.Claim{ID: limits.ClaimID(id), Rank: limits.Rank{Deadline: limits.Never, Seq: int64(seq)}}
	for _, k := range keys {
		c.Needs = append(c.Needs, limits.Need{Key: k, Limit: limit, Cost: min(1, limit.Burst)})
	}
	return c
}

// sync decides one batch and returns its verdicts.
func sync(s *limits.State, now limits.Time, batch limits.Batch) []limits.Verdict {
	if batch.Max == 0 {
		batch.Max = 100
	}
	var reply limits.Reply
	s.Sync(now, &batch, &reply)
	return reply.Verdicts
}

func TestStateTokenBucket(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Rate: limits.Rate{Tokens: 2, Per: 1e6}, Burst: 3}
	var three []limits.Claim
	for i := 1; i <= 3; i++ {
		three = append(three, claim(i, i, limit, host("h")))
	}
	for i, v := range sync(&s, 0, limits.Batch{Claims: three}) {
		if v.Cause != limits.Granted {
			t.Errorf("claim %d of the first three: %+v, want a grant", i+1, v)
		}
	}
	fourth := limits.Batch{Claims: []limits.Claim{claim(4, 4, limit, host("h"))}}
	got := sync(&s, second/4, fourth)[0]
	want := limits.Verdict{Cause: limits.Tokens, Key: host("h"), At: second / 2}
	if got != want {
		t.Errorf("fourth at +0.25 s: %+v, want %+v", got, want)
	}
	fourth.Claims = append(fourth.Claims, claim(5, 5, limit, host("h")))
	vs := sync(&s, second/2, fourth)
	if vs[0].Cause != limits.Granted || vs[1].Cause != limits.Tokens {
		t.Errorf("at +0.5 s: %+v, want exactly one grant", vs)
	}
}

func TestStateAllOrNothing(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 1}
	sync(&s, 0, limits.Batch{Claims: []limits.Claim{claim(1, 1, one, account("a"))}})
	got := sync(&s, 0, limits.Batch{Claims: []limits.Claim{
		claim(2, 2, one, host("h"), account("a")),
		claim(3, 3, one, host("h")),
	}})
	if got[0].Cause != limits.Permit || got[0].Key != account("a") {
		t.Errorf("claim on a full account: %+v, want it blocked by the account", got[0])
	}
	if got[1].Cause != limits.Granted {
		t.Errorf("claim behind it on the host alone: %+v, want a grant: a refused claim holds nothing", got[1])
	}
}

func TestStateRefundIsWhole(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 10e6}, Burst: 1}
	sync(&s, 0, limits.Batch{Claims: []limits.Claim{claim(1, 1, one, host("h"))}})
	got := sync(&s, 1, limits.Batch{
		Refunds: []limits.ClaimID{1},
		Claims:  []limits.Claim{claim(2, 2, one, host("h"))},
	})
	if got[0].Cause != limits.Granted {
		t.Errorf("after a refund: %+v, want a grant", got[0])
	}
	got = sync(&s, 2, limits.Batch{
		Releases: []limits.ClaimID{2, 2, 1, 99},
		Claims:   []limits.Claim{claim(3, 3, one, host("h")), claim(4, 4, limits.Limit{Concurrency: 1}, account("a")), claim(5, 5, limits.Limit{Concurrency: 1}, account("a"))},
	})
	if got[0].Cause != limits.Tokens {
		t.Errorf("after a release: %+v, want no token: a release gives back the permit alone", got[0])
	}
	if got[1].Cause != limits.Granted || got[2].Cause != limits.Permit {
		t.Errorf("two claims on a cap of 1: %+v, %+v, want one grant", got[1], got[2])
	}
}

func TestStateSavesForTheDear(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 10}
	spend := claim(1, 1, limit, host("h"))
	spend.Needs[0].Cost = 10
	sync(&s, 0, limits.Batch{Claims: []limits.Claim{spend}})

	dear := claim(2, 2, limit, host("h"))
	dear.Needs[0].Cost = 8
	cheap := claim(3, 3, limit, host("h"))
	got := sync(&s, 3*second, limits.Batch{Claims: []limits.Claim{dear, cheap}})
	if got[0].Cause != limits.Tokens || got[0].At != 8*second {
		t.Errorf("dear claim with 3 of 8 tokens: %+v, want it to wait until 8 s", got[0])
	}
	if got[1].Cause != limits.Tokens {
		t.Errorf("cheap claim behind it: %+v, want it refused though its token is there", got[1])
	}
	got = sync(&s, 8*second, limits.Batch{Claims: []limits.Claim{dear, cheap}})
	if got[0].Cause != limits.Granted || got[1].Cause != limits.Tokens {
		t.Errorf("at 8 s: %+v, want the dear one granted and no token left", got)
	}
}

func TestStateDoesNotSaveForOneWithoutPermit(t *testing.T) {
	var s limits.State
	rate := limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 1}
	cap1 := limits.Limit{Concurrency: 1}
	busy := claim(1, 1, cap1, account("a"))
	sync(&s, 0, limits.Batch{Claims: []limits.Claim{busy}})

	blocked := claim(2, 2, rate, host("h"))
	blocked.Needs = append(blocked.Needs, limits.Need{Key: account("a"), Limit: cap1})
	got := sync(&s, 0, limits.Batch{Claims: []limits.Claim{blocked, claim(3, 3, rate, host("h"))}})
	if got[0].Cause != limits.Permit || got[1].Cause != limits.Granted {
		t.Errorf("verdicts %+v, want the second to start: the first waits for a permit, not for the bucket", got)
	}
}

func TestStateSetsAsideAfterPatience(t *testing.T) {
	var s limits.State
	cap1 := limits.Limit{Concurrency: 1}
	h, a := host("h"), account("a")
	next := 100
	grant := func(keys ...limits.Key) limits.ClaimID {
		next++
		v := sync(&s, 0, limits.Batch{Claims: []limits.Claim{claim(next, next, cap1, keys...)}})
		if v[0].Cause != limits.Granted {
			return 0
		}
		return limits.ClaimID(next)
	}
	release := func(id limits.ClaimID) { sync(&s, 0, limits.Batch{Releases: []limits.ClaimID{id}}) }

	onHost, onAccount := grant(h), grant(a)
	first := claim(1, 1, cap1, h, a)
	if v := sync(&s, 0, limits.Batch{Claims: []limits.Claim{first}}); v[0].Cause != limits.Permit {
		t.Fatalf("first: %+v, want it blocked", v[0])
	}
	passed := 0
	for onHost != 0 { // the host is handed from one to the next while the account stays busy
		release(onHost)
		if onHost = grant(h); onHost != 0 {
			passed++
		}
	}
	if passed != 64 {
		t.Errorf("%d claims of lower rank passed the first, want 64", passed)
	}
	release(onAccount)
	if v := sync(&s, 0, limits.Batch{Claims: []limits.Claim{first}}); v[0].Cause != limits.Granted {
		t.Errorf("first with both free: %+v, want a grant", v[0])
	}
	release(1)
	if grant(h) == 0 || grant(a) == 0 {
		t.Error("after the first ended: still set aside, want both keys free")
	}
}

func TestStateHostPauseEmptiesTheBucket(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 5}
	one := limits.Batch{Claims: []limits.Claim{claim(1, 1, limit, host("h"))}}
	paused := one
	paused.Pauses = []limits.PauseRequest{{Key: host("h"), Until: 3 * second}, {Key: host("h"), Until: 2 * second}}
	if v := sync(&s, 0, paused)[0]; v.Cause != limits.Paused || v.At != 4*second {
		t.Errorf("during the longest pause: %+v, want it to end the wait at 4 s, with one token refilled", v)
	}
	if v := sync(&s, 3*second, one)[0]; v.Cause != limits.Tokens || v.At != 4*second {
		t.Errorf("at the pause's end: %+v, want an empty bucket", v)
	}
	if v := sync(&s, 4*second, one)[0]; v.Cause != limits.Granted {
		t.Errorf("one second later: %+v, want a grant", v)
	}
}

func TestStatePairPauseTouchesNoOther(t *testing.T) {
	var s limits.State
	free := limits.Limit{Concurrency: 5}
	of := func(id int, acc string) limits.Claim {
		c := claim(id, id, free, host("h"), account(acc))
		c.Pair = limits.PairKey("h", acc)
		return c
	}
	got := sync(&s, 0, limits.Batch{
		Pauses: []limits.PauseRequest{{Key: limits.PairKey("h", "a"), Until: second}},
		Claims: []limits.Claim{of(1, "a"), of(2, "b")},
	})
	if got[0].Cause != limits.Paused || got[0].At != second || got[1].Cause != limits.Granted {
		t.Errorf("verdicts %+v, want only the paused pair held", got)
	}
}

func TestStateMaxBehindAndLate(t *testing.T) {
	var s limits.State
	free := limits.Limit{Concurrency: 1}
	head := claim(1, 1, free, host("h"))
	behind := claim(2, 2, limits.Limit{}, account("a"))
	behind.Behind = 2
	late := claim(3, 3, free, host("x"))
	late.Rank.Deadline = second
	got := sync(&s, second+1, limits.Batch{Max: 1, Claims: []limits.Claim{head, claim(4, 4, free, host("h")), behind, late, claim(5, 5, free, host("y"))}})
	want := []limits.Cause{limits.Granted, limits.Permit, limits.Permit, limits.TooLate, limits.Permit}
	for i := range got {
		if got[i].Cause != want[i] {
			t.Errorf("claim %d: %+v, want cause %d", i, got[i], want[i])
		}
	}
	if got[4].Key.Kind != limits.Global {
		t.Errorf("claim beyond Max: %+v, want it blocked by the global cap", got[4])
	}
}

func BenchmarkStateAdmission(b *testing.B) {
	var s limits.State
	limit := limits.Limit{Concurrency: 4, Rate: limits.Rate{Tokens: 1e6, Per: 1}, Burst: 1e6}
	batch := limits.Batch{Max: 1, Claims: []limits.Claim{claim(1, 1, limit, host("api.example.com"), account("team-a"))}}
	batch.Claims[0].Pair = limits.PairKey("api.example.com", "team-a")
	var reply limits.Reply
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		batch.Claims[0].ID++
		batch.Releases = append(batch.Releases[:0], batch.Claims[0].ID-1)
		s.Sync(limits.Time(i), &batch, &reply)
		if reply.Verdicts[0].Cause != limits.Granted {
			b.Fatal(reply.Verdicts[0])
		}
	}
}
