package limits_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
)

const ms limits.Time = 1000

// say decides one batch of one member and returns the causes of its verdicts.
func say(t *testing.T, s *limits.State, member string, now limits.Time, batch limits.Batch) []limits.Cause {
	t.Helper()
	if batch.Max == 0 {
		batch.Max = 100
	}
	var reply limits.Reply
	if err := s.SyncMember(member, now, &batch, &reply); err != nil {
		t.Fatalf("SyncMember(%s) = %v", member, err)
	}
	var causes []limits.Cause
	for _, v := range reply.Verdicts {
		causes = append(causes, v.Cause)
	}
	return causes
}

// since has a claim's lane wait since then.
func since(c limits.Claim, at limits.Time) limits.Claim {
	c.Rank.Since = at
	return c
}

// cost sets the cost of a claim's first need.
func cost(c limits.Claim, tokens int64) limits.Claim {
	c.Needs[0].Cost = tokens
	return c
}

func ids(n ...limits.ClaimID) []limits.ClaimID { return n }

func claims(c ...limits.Claim) []limits.Claim { return c }

func TestMembersNameTheirOwnClaims(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1}
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))})
	got := say(t, &s, "b", 0, limits.Batch{Releases: ids(1), Claims: claims(claim(1, 1, one, host("h")))})
	if got[0] != limits.Permit {
		t.Errorf("b's claim 1 while a holds its own: cause %d, want no permit: b released nothing", got[0])
	}
	say(t, &s, "a", 0, limits.Batch{Releases: ids(1)})
	if diff := cmp.Diff([]string{"b"}, s.Wakes()); diff != "" {
		t.Errorf("woken by a's release (-want +got):\n%s", diff)
	}
	if got := say(t, &s, "b", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))}); got[0] != limits.Granted {
		t.Errorf("b's claim after a's release: cause %d, want a grant", got[0])
	}
}

func TestAGrantIsSaidTwiceAndMadeOnce(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 2}
	batch := limits.Batch{Claims: claims(claim(1, 1, limit, host("h")))}
	for range 3 {
		if got := sync(&s, 0, batch)[0].Cause; got != limits.Granted {
			t.Fatalf("claim said again: cause %d, want the same grant", got)
		}
	}
	if got := sync(&s, 0, limits.Batch{Releases: ids(1), Claims: claims(claim(2, 2, limit, host("h")))})[0].Cause; got != limits.Granted {
		t.Errorf("after its release: cause %d, want one permit and one of two tokens to be there", got)
	}
}

// Whoever releases and asks again in one batch does not go before a member that
// has waited longer, whatever priority it has.
func TestTheLongestWaitingMemberGoesFirst(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1}
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))})
	say(t, &s, "b", 0, limits.Batch{Claims: claims(since(claim(1, 1, one, host("h")), 7))})
	say(t, &s, "c", 0, limits.Batch{Claims: claims(since(claim(1, 1, one, host("h")), 5))})

	greedy := since(claim(2, 2, one, host("h")), 9)
	greedy.Rank.Priority, greedy.Rank.Deadline = 1000, second
	if got := say(t, &s, "a", ms, limits.Batch{Releases: ids(1), Claims: claims(greedy)}); got[0] != limits.Permit {
		t.Errorf("a takes back what it released: cause %d, want it left to those who wait longer", got[0])
	}
	if diff := cmp.Diff([]string{"c"}, s.Wakes()); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	b := limits.Batch{Claims: claims(since(claim(1, 1, one, host("h")), 7))}
	if got := say(t, &s, "b", 2*ms, b); got[0] != limits.Permit {
		t.Errorf("b, second in line: cause %d, want no permit", got[0])
	}
	if got := say(t, &s, "c", 3*ms, limits.Batch{Claims: claims(since(claim(1, 1, one, host("h")), 5))}); got[0] != limits.Granted {
		t.Errorf("c, first in line: cause %d, want a grant", got[0])
	}
}

func TestWhoDoesNotComeIsWaitedForNoLonger(t *testing.T) {
	one := limits.Limit{Concurrency: 1}
	tests := []struct {
		name   string
		until  func(t *testing.T, s *limits.State) // from 0 on, after b's refusal
		at     limits.Time
		cause  limits.Cause
		reason string
	}{
		{"one that was just woken is waited for", func(t *testing.T, s *limits.State) {
			say(t, s, "a", 0, limits.Batch{Releases: ids(1)})
		}, 300 * ms, limits.Permit, "b may still come"},
		{"one that was woken and did not come is not", func(t *testing.T, s *limits.State) {
			say(t, s, "a", 0, limits.Batch{Releases: ids(1)})
		}, 301 * ms, limits.Granted, "b did not come"},
		{"one that has not been heard of for long is not", func(t *testing.T, s *limits.State) {
			say(t, s, "a", 2*second, limits.Batch{Releases: ids(1)})
		}, 2 * second, limits.Granted, "b is stopped"},
		{"one that has left is not", func(t *testing.T, s *limits.State) {
			s.Leave("b", 0)
			say(t, s, "a", 0, limits.Batch{Releases: ids(1)})
		}, 0, limits.Granted, "b is gone"},
		{"one that has no slot free is not", func(t *testing.T, s *limits.State) {
			say(t, s, "b", 0, limits.Batch{Max: 1, Claims: claims(claim(2, 2, one, host("x")))})
			say(t, s, "a", 0, limits.Batch{Releases: ids(1)})
		}, 0, limits.Granted, "b cannot start it"},
		{"one whose other key has no permit is not", func(t *testing.T, s *limits.State) {
			say(t, s, "a", 0, limits.Batch{Releases: ids(1), Claims: claims(claim(9, 9, one, account("acc")))})
		}, 0, limits.Granted, "b cannot start"},
	}
	for _, tt := range tests {
		var s limits.State
		say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))})
		say(t, &s, "b", 0, limits.Batch{Claims: claims(since(claim(1, 1, one, host("h"), account("acc")), -9))})
		tt.until(t, &s)
		if got := say(t, &s, "c", tt.at, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))}); got[0] != tt.cause {
			t.Errorf("%s: cause %d, want %d: %s", tt.name, got[0], tt.cause, tt.reason)
		}
	}
}

// A woken member that cannot use the permit passes it on.
func TestAWakeIsPassedOn(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1}
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")), claim(2, 2, one, account("acc")))})
	b := limits.Batch{Claims: claims(since(claim(1, 1, one, host("h"), account("acc")), -9))}
	say(t, &s, "b", 0, b)
	say(t, &s, "c", 0, limits.Batch{Claims: claims(claim(1, 1, one, host("h")))})
	for _, step := range []struct {
		member string
		batch  limits.Batch
		want   []string
	}{
		{"a", limits.Batch{Releases: ids(1)}, []string{"b"}},
		{"b", b, []string{"c"}},
		{"a", limits.Batch{Releases: ids(2)}, []string{"b"}},
	} {
		say(t, &s, step.member, ms, step.batch)
		if diff := cmp.Diff(step.want, s.Wakes()); diff != "" {
			t.Errorf("woken by %s (-want +got):\n%s", step.member, diff)
		}
	}
}

func TestADearClaimIsNotStarvedByAnotherMembersCheapOnes(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 10}
	say(t, &s, "b", 0, limits.Batch{Claims: claims(cost(claim(1, 1, limit, host("h")), 10))})
	dear := limits.Batch{Claims: claims(since(cost(claim(1, 1, limit, host("h")), 8), 1))}
	say(t, &s, "a", 0, dear)
	for now := second; now < 8*second; now += second / 4 {
		cheap := since(claim(2, 2, limit, host("h")), now)
		cheap.Rank.Priority = 5
		if got := say(t, &s, "b", now, limits.Batch{Claims: claims(cheap)}); got[0] != limits.Tokens {
			t.Fatalf("a cheap claim of b at %d: cause %d, want the tokens saved for a", now, got[0])
		}
	}
	if got := say(t, &s, "a", 8*second, dear); got[0] != limits.Granted {
		t.Errorf("the dear claim at 8 s: cause %d, want a grant", got[0])
	}
}

// The host is handed on within b while the account is busy: a, which needs both, is
// passed 64 times and no more.
func TestBypassBetweenMembersIsBounded(t *testing.T) {
	var s limits.State
	one := limits.Limit{Concurrency: 1}
	say(t, &s, "b", 0, limits.Batch{Claims: claims(claim(1000, 1, one, account("acc")), claim(1, 1, one, host("h")))})
	both := limits.Batch{Claims: claims(since(claim(1, 1, one, host("h"), account("acc")), -9))}
	passed := 0
	for id := 2; ; id++ {
		now := limits.Time(id) * 100 * ms
		say(t, &s, "a", now, both)
		got := say(t, &s, "b", now, limits.Batch{Releases: ids(limits.ClaimID(id - 1)), Claims: claims(claim(id, id, one, host("h")))})
		if got[0] != limits.Granted {
			break
		}
		if passed++; passed > 64 {
			t.Fatal("a was passed more than 64 times")
		}
	}
	if passed != 64 {
		t.Errorf("a was passed %d times, want 64", passed)
	}
	say(t, &s, "b", 10*second, limits.Batch{Releases: ids(1000)})
	if got := say(t, &s, "a", 10*second, both); got[0] != limits.Granted {
		t.Errorf("a with both keys free: cause %d, want a grant", got[0])
	}
}

func TestAMemberThatLeavesGivesBackItsPermits(t *testing.T) {
	var s limits.State
	limit := limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 2}
	of := func(id int) limits.Batch { return limits.Batch{Claims: claims(claim(id, id, limit, host("h")))} }
	say(t, &s, "a", 0, of(1))
	say(t, &s, "a", 0, of(2))
	say(t, &s, "b", 0, of(1))
	s.Leave("a", 0)
	if diff := cmp.Diff([]string{"b"}, s.Wakes()); diff != "" {
		t.Errorf("woken as a leaves (-want +got):\n%s", diff)
	}
	if got := say(t, &s, "b", 0, of(1)); got[0] != limits.Tokens {
		t.Errorf("b after a has left: cause %d, want permits, and no tokens", got[0])
	}
	s.Leave("nobody", 0)
}

func TestDifferentNumbersAreRefused(t *testing.T) {
	var s limits.State
	four, six := limits.Limit{Concurrency: 4}, limits.Limit{Concurrency: 6, Rate: limits.Rate{Tokens: 1, Per: 1e5}, Burst: 3}
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, four, host("h")), claim(2, 2, four, host("i")))})
	batch := limits.Batch{Max: 10, Releases: ids(1), Claims: claims(claim(1, 1, four, host("i")), claim(2, 2, six, host("h")))}
	var reply limits.Reply
	err := s.SyncMember("b", 0, &batch, &reply)
	want := &limits.Conflict{Key: host("h"), Member: "a", Theirs: four, Asked: six}
	if got := (*limits.Conflict)(nil); !errors.As(err, &got) || *got != *want {
		t.Fatalf("other numbers: %v, want %v", err, want)
	}
	if got, want := err.Error(), "host/h: concurrency 6, rate 10/s, burst 3 here, but concurrency 4 at a, which runs now"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	s.Leave("a", 0)
	if got := say(t, &s, "b", 0, batch); !slices.Equal(got, []limits.Cause{limits.Granted, limits.Granted}) {
		t.Errorf("once a has left: causes %d, want grants", got)
	}
}

func TestNewNumbersMintNothing(t *testing.T) {
	of := func(id int, tokens, per, burst, c int64) limits.Batch {
		return limits.Batch{Claims: claims(cost(claim(id, id, bucketOf(tokens, per, burst), host("h")), c))}
	}
	var s limits.State
	say(t, &s, "a", 0, of(1, 1, 1e6, 10, 7))
	s.Leave("a", 0)
	for i, step := range []struct {
		batch limits.Batch
		want  limits.Cause
	}{
		{of(1, 1, 7e6, 20, 4), limits.Tokens}, // three are left, of whatever size
		{limits.Batch{Withdrawn: ids(1), Claims: of(2, 1, 7e6, 20, 3).Claims}, limits.Granted},
		{of(3, 1, 7e6, 20, 1), limits.Tokens},
	} {
		if got := say(t, &s, "b", 0, step.batch); got[0] != step.want {
			t.Errorf("step %d: cause %d, want %d", i, got[0], step.want)
		}
	}
}

// A claim that was refused under other numbers may cost more than the bucket can hold
// now: nothing is saved for it, and nobody gets tokens that are not there.
func TestNothingIsSavedForWhoCanNeverStart(t *testing.T) {
	var s limits.State
	p, q := bucketOf(1, 1e6, 1), bucketOf(1, 1e6, 8)
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(1, 1, p, host("p")), cost(claim(2, 2, q, host("q")), 8))})
	both := claim(3, 3, p, host("p"))
	both.Needs = append(both.Needs, limits.Need{Key: host("q"), Limit: q, Cost: 8})
	say(t, &s, "a", 0, limits.Batch{Claims: claims(both)})
	say(t, &s, "a", 0, limits.Batch{Claims: claims(claim(4, 4, bucketOf(1, 1e6, 2), host("q")))})
	for _, step := range []struct {
		now  limits.Time
		want limits.Cause
	}{{0, limits.Tokens}, {second, limits.Granted}} {
		if got := say(t, &s, "a", step.now, limits.Batch{Claims: claims(claim(5, 5, p, host("p")))}); got[0] != step.want {
			t.Errorf("at %d, with a token from %d on: cause %d, want %d", step.now, second, got[0], step.want)
		}
	}
}

// TestNoCycleOfWaits has members wait for each other over three keys, so that each
// goes before the next: a2 behind a1 by rank, b behind a2 and a1 behind b by turn.
func TestNoCycleOfWaits(t *testing.T) {
	rate := limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1e6}, Burst: 1}
	var s limits.State
	p, q, r := host("p"), host("q"), host("r")
	say(t, &s, "z", 0, limits.Batch{Claims: claims(claim(1, 1, rate, p), claim(2, 2, rate, q), claim(3, 3, rate, r))})
	a1, a2, b := since(claim(1, 1, rate, r, p), 9), since(claim(2, 2, rate, q, r), 1), since(claim(1, 1, rate, p, q), 5)
	a1.Rank.Priority = 1
	granted := 0
	for now := limits.Time(0); now <= 3*second; now += 100 * ms {
		for _, c := range say(t, &s, "a", now, limits.Batch{Claims: claims(a1, a2)}) {
			if c == limits.Granted {
				granted++
			}
		}
		if say(t, &s, "b", now, limits.Batch{Claims: claims(b)})[0] == limits.Granted {
			granted++
		}
		if granted > 0 {
			return
		}
	}
	t.Error("nobody has started after three seconds, though every token was there after one")
}

// TestEveryClaimOfEveryMemberStarts runs members side by side at random: limits
// hold, and everybody gets through.
func TestEveryClaimOfEveryMemberStarts(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(seed)
		for w.left > 0 && w.now < 1000*second {
			w.now += limits.Time(w.rng.IntN(50)) * ms
			w.step(t, w.rng.IntN(len(w.waiting)))
		}
		if w.left > 0 {
			t.Fatalf("seed %d: %d claims have not started after %d s", seed, w.left, w.now/second)
		}
	}
}

// world is a few members that have claims on a few keys, and what they hold.
type world struct {
	rng     *rand.Rand
	state   limits.State
	now     limits.Time
	waiting [][]limits.Claim // by member
	holding []map[limits.ClaimID]limits.Claim
	inUse   map[limits.Key]int64
	left    int
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 9)), inUse: make(map[limits.Key]int64)}
	var limitOf []limits.Limit
	for range 4 {
		l := limits.Limit{Concurrency: int64(w.rng.IntN(3))}
		if w.rng.IntN(2) == 0 {
			l.Rate, l.Burst = limits.Rate{Tokens: 1 + w.rng.Int64N(20), Per: 1e6}, 3
		}
		limitOf = append(limitOf, l)
	}
	for range 2 + w.rng.IntN(3) {
		var own []limits.Claim
		for id := range 30 {
			c := since(claim(id+1, id, limits.Limit{}), limits.Time(w.rng.IntN(100)))
			c.Rank.Priority = w.rng.Int64N(3)
			for k, l := range limitOf {
				if w.rng.IntN(2) == 0 {
					c.Needs = append(c.Needs, limits.Need{Key: host(strconv.Itoa(k)), Limit: l, Cost: w.rng.Int64N(l.Burst + 1)})
				}
			}
			own = append(own, c)
		}
		slices.SortFunc(own, func(a, b limits.Claim) int {
			if a.Rank.Before(b.Rank) {
				return -1
			}
			return 1
		})
		w.waiting, w.holding = append(w.waiting, own), append(w.holding, make(map[limits.ClaimID]limits.Claim))
		w.left += len(own)
	}
	return w
}

// step has one member give back some of what it holds, and ask for all it waits
// for.
func (w *world) step(t *testing.T, i int) {
	batch := w.batch(t, i)
	var reply limits.Reply
	if err := w.state.SyncMember(strconv.Itoa(i), w.now, &batch, &reply); err != nil {
		t.Fatal(err)
	}
	w.take(t, i, &batch, reply.Verdicts)
}

func (w *world) batch(t *testing.T, i int) limits.Batch {
	batch := limits.Batch{Max: 1 + w.rng.IntN(10), Claims: w.waiting[i]}
	for id, c := range w.holding[i] {
		if w.rng.IntN(2) == 0 {
			delete(w.holding[i], id)
			w.count(t, c, -1)
			batch.Releases = append(batch.Releases, id)
		}
	}
	return batch
}

func (w *world) take(t *testing.T, i int, batch *limits.Batch, verdicts []limits.Verdict) {
	w.waiting[i] = nil
	for at, c := range batch.Claims {
		if verdicts[at].Cause != limits.Granted {
			w.waiting[i] = append(w.waiting[i], c)
			continue
		}
		w.holding[i][c.ID] = c
		w.count(t, c, 1)
		w.left--
	}
}

func (w *world) count(t *testing.T, c limits.Claim, d int64) {
	for _, n := range c.Needs {
		if w.inUse[n.Key] += d; n.Limit.Concurrency > 0 && w.inUse[n.Key] > n.Limit.Concurrency {
			t.Fatalf("%v: %d permits in use of %d", n.Key, w.inUse[n.Key], n.Limit.Concurrency)
		}
	}
}

// TestWakesAreEnough has members ask only when they are woken, and the clock stand
// nearly still: nobody waits for what is free.
func TestWakesAreEnough(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var s limits.State
		two := limits.Limit{Concurrency: 2}
		sets := [][]limits.Key{{host("h")}, {account("a")}, {host("h"), account("a")}}
		const members, calls = 8, 15
		awake, holds, made, began := []int{}, [members]bool{}, [members]int{}, [members]limits.Time{}
		for i := range members {
			awake = append(awake, i)
		}
		now := limits.Time(0)
		for len(awake) > 0 {
			at := rng.IntN(len(awake))
			i := awake[at]
			awake = slices.Delete(awake, at, at+1)
			now++
			id := limits.ClaimID(made[i] + 1)
			if holds[i] {
				holds[i] = false
				made[i], began[i] = made[i]+1, now
				say(t, &s, strconv.Itoa(i), now, limits.Batch{Releases: ids(id)})
				if made[i] < calls {
					awake = append(awake, i)
				}
			} else if made[i] < calls {
				c := since(claim(int(id), 0, two, sets[(i+made[i])%3]...), began[i])
				if say(t, &s, strconv.Itoa(i), now, limits.Batch{Claims: claims(c)})[0] == limits.Granted {
					holds[i] = true
					awake = append(awake, i)
				}
			}
			for _, name := range s.Wakes() {
				if w, _ := strconv.Atoi(name); !slices.Contains(awake, w) {
					awake = append(awake, w)
				}
			}
		}
		if want := slices.Repeat([]int{calls}, members); !slices.Equal(made[:], want) {
			t.Fatalf("seed %d: made %v calls, want %v: somebody was not woken", seed, made, calls)
		}
	}
}
