package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"agentlimit/limits"
)

func ownIDs(t *testing.T, m []*member) {
	expect(t, "a's claim 1", []limits.Cause{granted}, m[0].ask(claim(1, slots(1), host)))
	expect(t, "b's claim 1, on another key", []limits.Cause{granted}, m[1].ask(claim(1, slots(1), other)))
	m[1].release(1, 2)
	expect(t, "b on a's key after releases of its own", []limits.Cause{permit}, m[1].ask(claim(2, slots(1), host)))
}

func releaseWakes(t *testing.T, m []*member) {
	m[0].ask(claim(1, slots(1), host))
	expect(t, "b while a holds the permit", []limits.Cause{permit}, m[1].ask(claim(1, slots(1), host)))
	m[0].release(1)
	m[1].granted(claim(1, slots(1), host))
}

// nobodyTakesBack has a release what b waits for, and ask for it in one breath.
func nobodyTakesBack(t *testing.T, m []*member) {
	m[0].ask(claim(1, slots(1), host))
	start := m[0].Now()
	old := since(claim(1, slots(1), host), start)
	m[1].ask(old)
	urgent := since(claim(2, slots(1), host), start+1)
	urgent.Rank.Priority = 9
	got := m[0].say(limits.Batch{Releases: []limits.ClaimID{1}, Claims: []limits.Claim{urgent}})
	expect(t, "a, which has started last", []limits.Cause{permit}, causes(got))
	m[1].granted(old)
	m[1].release(1)
	m[0].granted(urgent)
}

func dearIsNotStarved(t *testing.T, m []*member) {
	limit := perMS(40)
	m[0].ask(dear(claim(1, limit, host), 40))
	start := m[0].Now()
	big := since(dear(claim(1, limit, host), 40), start)
	ready := m[1].say(limits.Batch{Claims: []limits.Claim{big}})[0].At
	for id := 2; m[0].Now() < ready-1000; id++ {
		c := since(claim(id, limit, host), start+1)
		c.Rank.Priority = 9
		if got := m[0].ask(c)[0]; got == granted && m[0].reply.Now < ready {
			t.Fatal("a cheap claim took what is saved for another member's dear one")
		}
	}
	m[1].granted(big)
}

func pauseStopsAll(t *testing.T, m []*member) {
	until := m[0].Now().Add(pause)
	pair := limits.PairKey(other.Name, account.Name)
	m[0].say(limits.Batch{Pauses: []limits.PauseRequest{{Key: host, Until: until}, {Key: pair, Until: until}}})
	of := claim(2, slots(1), other, account)
	of.Pair = pair
	expect(t, "b on the paused host, and of the paused pair", []limits.Cause{paused, paused}, m[1].ask(claim(1, slots(1), host), of))
	m[1].wait(until)
	expect(t, "b after the pause", []limits.Cause{granted, granted}, m[1].ask(claim(1, slots(1), host), of))
}

func otherNumbers(t *testing.T, m []*member) {
	m[0].ask(claim(1, slots(2), host))
	batch := limits.Batch{Max: 9, Claims: []limits.Claim{claim(1, slots(1), account), claim(2, slots(3), host)}}
	var conflict *limits.Conflict
	err := m[1].Sync(context.Background(), &batch, &m[1].reply)
	if !errors.As(err, &conflict) {
		t.Fatalf("other numbers: %v, want a conflict", err)
	}
	expect(t, "the conflict", &limits.Conflict{Key: host, Member: conflict.Member, Theirs: slots(2), Asked: slots(3)}, conflict)
	expect(t, "a on the other key of that batch", []limits.Cause{granted}, m[0].ask(claim(2, slots(1), account)))
	m[0].release(1, 2)
	expect(t, "b's numbers when a uses none of the keys", []limits.Cause{granted, granted}, causes(m[1].say(batch)))
}

// cancelled says a batch in vain, and then again: what is in it happens once.
func cancelled(t *testing.T, m []*member) {
	limit := limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 3}
	m[0].ask(claim(1, limit, host))
	batch := limits.Batch{Max: 9, Refunds: []limits.ClaimID{1}, Claims: []limits.Claim{claim(2, limit, host), claim(3, limit, host)}}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m[0].Sync(gone, &batch, &m[0].reply); !errors.Is(err, context.Canceled) {
		t.Fatalf("Sync without time = %v, want %v", err, context.Canceled)
	}
	expect(t, "the batch said again", []limits.Cause{granted, granted}, causes(m[0].say(batch)))
	m[0].release(2, 3)
	expect(t, "one token is left", []limits.Cause{granted, tokens}, m[1].ask(claim(1, limit, host), claim(2, limit, host)))
}

// capIsShared and bucketIsShared have everybody ask, those that come late too.
func capIsShared(t *testing.T, m []*member) { shared(t, m, slots(3), permit) }

func bucketIsShared(t *testing.T, m []*member) { shared(t, m, perMinute(3), tokens) }

func shared(t *testing.T, m []*member, limit limits.Limit, refusal limits.Cause) {
	for i := range m {
		want := refusal
		if i < 3 {
			want = granted
		}
		expect(t, "one more member", []limits.Cause{want}, m[i].ask(claim(1, limit, host)))
	}
}

func leavingGivesBack(t *testing.T, m []*member) {
	limit := limits.Limit{Concurrency: 4, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 5}
	m[0].ask(claim(1, limit, host), claim(2, limit, host), claim(3, limit, host), claim(4, limit, host))
	expect(t, "b while a holds all", []limits.Cause{permit}, m[1].ask(claim(1, limit, host)))
	for range 2 {
		if err := m[0].Close(); err != nil {
			t.Fatalf("Close() = %v", err)
		}
	}
	m[1].granted(claim(1, limit, host))
	expect(t, "c, when a's tokens and b's are gone", []limits.Cause{tokens}, m[2].ask(claim(1, limit, host)))
}

// crowd has all members make calls at once: never more than the caps at a time,
// nobody left behind.
func crowd(t *testing.T, m []*member) {
	const calls = 15
	var underWay [2]atomic.Int64
	sets := [][]limits.Key{{host}, {account}, {host, account}}
	var all sync.WaitGroup
	for i := range m {
		all.Go(func() {
			for id := 1; id <= calls && !t.Failed(); id++ {
				c := since(claim(id, slots(2), sets[(i+id)%3]...), m[i].Now())
				m[i].granted(c)
				for _, n := range c.Needs {
					if at := n.Key.Kind - limits.Host; underWay[at].Add(1) > 2 {
						t.Errorf("%v: more than two calls under way", n.Key)
					}
				}
				for _, n := range c.Needs {
					underWay[n.Key.Kind-limits.Host].Add(-1)
				}
				m[i].release(c.ID)
			}
		})
	}
	all.Wait()
}
