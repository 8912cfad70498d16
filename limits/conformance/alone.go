package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

const (
	granted = limits.Granted
	permit  = limits.Permit
	tokens  = limits.Tokens
	paused  = limits.Paused
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// subsets calls f with every subset of the kinds of key, several pools included,
// in admission order; names differ from subset to subset.
func subsets(f func(number int, keys []limits.Key)) {
	for set := range 1 << 4 {
		keys := []limits.Key{}
		for i, key := range []limits.Key{host, account, poolP, poolQ} {
			if set&(1<<i) != 0 {
				key.Name += string(rune('a' + set))
				keys = append(keys, key)
			}
		}
		f(set, keys)
	}
}

// allOrNothing has one key used up by another claim, for each key of each subset:
// the claim on all of them is refused for that key, and holds none of the others.
func allOrNothing(t *testing.T, m []*member) {
	both := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 2}
	id := 0
	next := func(keys ...limits.Key) limits.Claim { id++; return claim(id, both, keys...) }
	subsets(func(_ int, keys []limits.Key) {
		for i, key := range keys {
			names := slices.Clone(keys)
			for j := range names {
				names[j].Name += string(rune('0' + i))
			}
			key = names[i]
			holder := next(key)
			expect(t, "the first claim on "+key.String(), []limits.Cause{granted}, m[0].ask(holder))
			all := next(names...)
			v := m[0].say(limits.Batch{Claims: []limits.Claim{all}})[0]
			expect(t, "all keys while one is used up", limits.Verdict{Cause: permit, Key: key}, v)
			m[0].say(limits.Batch{Withdrawn: []limits.ClaimID{all.ID}})
			rest := next(slices.Delete(slices.Clone(names), i, i+1)...)
			expect(t, "the other keys", []limits.Cause{granted}, m[0].ask(rest))
			m[0].release(holder.ID, rest.ID)
			expect(t, "all keys when all are free", []limits.Cause{granted}, m[0].ask(next(names...)))
			m[0].release(limits.ClaimID(id))
			for _, key := range names {
				expect(t, "both tokens of "+key.String()+" are gone", []limits.Cause{tokens}, m[0].ask(next(key)))
			}
		}
	})
}

func releaseAndRefund(t *testing.T, m []*member) {
	limit := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 7}
	of := func(id int, cost int64) limits.Claim { return dear(claim(id, limit, host, account), cost) }
	for _, step := range []struct {
		what  string
		batch limits.Batch
		want  limits.Cause
	}{
		{"five of seven tokens", limits.Batch{Claims: []limits.Claim{of(1, 5)}}, granted},
		{"three more after a release: a permit came back, no token", limits.Batch{Releases: []limits.ClaimID{1}, Claims: []limits.Claim{of(2, 3)}}, tokens},
		{"two more", limits.Batch{Withdrawn: []limits.ClaimID{2}, Claims: []limits.Claim{of(3, 2)}}, granted},
		{"two again after a refund", limits.Batch{Refunds: []limits.ClaimID{3}, Claims: []limits.Claim{of(4, 2)}}, granted},
		{"one after refunds of what was given back already, or never held", limits.Batch{Refunds: []limits.ClaimID{3, 3, 1, 2, 99}, Claims: []limits.Claim{of(5, 1)}}, permit},
		{"a permit without tokens", limits.Batch{Releases: []limits.ClaimID{4, 4}, Withdrawn: []limits.ClaimID{5}, Claims: []limits.Claim{of(6, 0)}}, granted},
		{"a permit that is held", limits.Batch{Releases: []limits.ClaimID{4}, Claims: []limits.Claim{of(7, 0)}}, permit},
	} {
		expect(t, step.what, []limits.Cause{step.want}, causes(m[0].say(step.batch)))
	}
}

// askAgainWhenTold spends a bucket, and more of it each time that a refusal names:
// no more is ever spent than burst and rate allow.
func askAgainWhenTold(t *testing.T, m []*member) {
	limit, start := perMS(3), m[0].Now()
	for id := 1; id <= 12; id++ {
		m[0].granted(dear(claim(id, limit, host), int64(1+id%3)))
		m[0].release(limits.ClaimID(id))
	}
	const spent, held = 24, 3
	if took := m[0].reply.Now.Sub(start); took < (spent-held)*time.Millisecond {
		t.Errorf("%d tokens at one a millisecond and %d to start with took %v", spent, held, took)
	}
	first := m[0].ask(dear(claim(20, perMinute(3), account), 2), dear(claim(21, perMinute(3), account), 1), claim(22, perMinute(3), account))
	expect(t, "a burst of three", []limits.Cause{granted, granted, tokens}, first)
	v := m[0].reply.Verdicts[2]
	if wait := v.At.Sub(m[0].reply.Now); wait > time.Minute || wait < 59*time.Second {
		t.Errorf("a token at one a minute: %+v, which is in %v", v, wait)
	}
}

func savesForTheDear(t *testing.T, m []*member) {
	limit := perMinute(10)
	expect(t, "most of the bucket", []limits.Cause{granted}, m[0].ask(dear(claim(1, limit, host), 8)))
	expect(t, "a dear claim, and a cheap one of lower rank whose token is there", []limits.Cause{tokens, tokens},
		m[0].ask(dear(claim(2, limit, host), 9), claim(3, limit, host)))
	got := m[0].say(limits.Batch{Withdrawn: []limits.ClaimID{2}, Claims: []limits.Claim{claim(3, limit, host)}})
	expect(t, "the cheap one when the dear one is withdrawn", []limits.Cause{granted}, causes(got))
}

// hostPause empties the bucket, so that no burst follows.
func hostPause(t *testing.T, m []*member) {
	until := m[0].Now().Add(pause)
	v := m[0].say(limits.Batch{
		Pauses: []limits.PauseRequest{{Key: host, Until: until}, {Key: host, Until: until - 50_000}},
		Claims: []limits.Claim{claim(1, perMinute(5), host), claim(2, slots(1), account)},
	})
	expect(t, "the paused host, and another key", []limits.Cause{paused, granted}, causes(v))
	if ready := until + 60e6; v[0].Key != host || v[0].At != ready {
		t.Errorf("paused until %d: %+v, want a first token at %d", until, v[0], ready)
	}
	m[0].wait(until)
	expect(t, "after the pause", []limits.Cause{tokens}, m[0].ask(claim(1, perMinute(5), host)))
}

// pairPause holds one account at one host, and touches no bucket.
func pairPause(t *testing.T, m []*member) {
	pair := limits.PairKey(host.Name, account.Name)
	until := m[0].Now().Add(pause)
	of := func(id int) limits.Claim {
		c := claim(id, perMinute(2), host, account)
		c.Pair = pair
		return c
	}
	elsewhere := claim(2, perMinute(2), host)
	v := m[0].say(limits.Batch{
		Pauses: []limits.PauseRequest{{Key: pair, Until: until}},
		Claims: []limits.Claim{of(1), elsewhere},
	})
	expect(t, "the paused pair, and the host without it", []limits.Cause{paused, granted}, causes(v))
	expect(t, "who is paused", limits.Verdict{Cause: paused, Key: pair, At: until}, v[0])
	m[0].wait(until)
	expect(t, "after the pause", []limits.Cause{granted}, m[0].ask(of(1)))
}

func maxAndBehind(t *testing.T, m []*member) {
	one := slots(1)
	behind := claim(3, slots(9), other)
	behind.Behind = 2
	v := m[0].say(limits.Batch{Max: 2, Claims: []limits.Claim{
		claim(1, one, host), claim(2, one, host), behind, claim(4, one, account), claim(5, one, poolP),
	}})
	want := []limits.Verdict{
		{},
		{Cause: permit, Key: host},
		{Cause: permit, Key: host},
		{},
		{Cause: permit},
	}
	expect(t, "two free slots, and a claim behind a refused one", want, v)
}

func tooLate(t *testing.T, m []*member) {
	late := claim(1, slots(1), host)
	late.Rank.Deadline = m[0].Now() - 1
	expect(t, "a claim whose deadline has passed", []limits.Cause{limits.TooLate, granted}, m[0].ask(late, claim(2, slots(1), host)))
}

// saidTwice says a batch again as if its reply had been lost.
func saidTwice(t *testing.T, m []*member) {
	limit := limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 3}
	for range 3 {
		expect(t, "the same claim", []limits.Cause{granted}, m[0].ask(claim(1, limit, host)))
	}
	for range 2 {
		got := m[0].say(limits.Batch{Refunds: []limits.ClaimID{1}, Claims: []limits.Claim{claim(2, limit, host), claim(3, limit, host)}})
		expect(t, "two more, in place of a refunded one", []limits.Cause{granted, granted}, causes(got))
	}
	m[0].release(2)
	expect(t, "one token is left", []limits.Cause{granted, permit}, m[0].ask(claim(4, limit, host), claim(5, limit, host)))
	// Who withdraws a claim that was granted did not hear of it.
	got := m[0].say(limits.Batch{Withdrawn: []limits.ClaimID{4, 5}, Claims: []limits.Claim{claim(6, limit, host), claim(7, limit, host)}})
	expect(t, "in place of a withdrawn one", []limits.Cause{granted, permit}, causes(got))
}

// levels tells what is left.
func levels(t *testing.T, m []*member) {
	limit := perMinute(5)
	until := m[0].Now().Add(time.Minute)
	m[0].say(limits.Batch{
		Pauses: []limits.PauseRequest{{Key: other, Until: until}},
		Claims: []limits.Claim{dear(claim(1, limit, host), 3)},
	})
	got := map[limits.Key]limits.Level{}
	for _, l := range m[0].reply.Levels {
		got[l.Key] = l
	}
	now := m[0].reply.Now
	want := map[limits.Key]limits.Level{
		host:  {Key: host, Bucket: limits.Bucket{Level: 2 * 60e6, Last: now}},
		other: {Key: other, Bucket: limits.Bucket{Last: until}, Pause: until},
	}
	expect(t, "levels", want, got)
	if late := m[0].Now(); now > late || now < until-61e6 {
		t.Errorf("decided at %d, asked before %d and answered by %d", now, until-60e6, late)
	}
}
