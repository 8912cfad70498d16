//go:build unix

package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

const ms limits.Time = 1000

// TestRule has limits.State and the script decide the same batches of several members
// at the same moments, and wants the same verdicts, levels and wake-ups. Of the State
// too only what is stored lasts from step to step.
func TestRule(t *testing.T) {
	s := newServer(t)
	seeds := uint64(18)
	if long() {
		seeds = 300
	}
	for seed := range seeds {
		w := newWorld(t, s, seed)
		steps := 300
		if w.crowded {
			steps = 900 // until permits are set aside
		}
		for n := 0; n < steps && !t.Failed(); n++ {
			w.step()
		}
		w.close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// world is some members that have claims on a few keys, decided twice.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     limits.Time
	state   *limits.State
	members []*actor
	wakes   *redis.PubSub
	client  *redis.Client
	limitOf map[limits.Key]limits.Limit
	keys    []limits.Key
	nextID  limits.ClaimID
	pace    limits.Time
	crowded bool // one key changes hands quickly, another seldom; who waits seldom asks again
}

type actor struct {
	*Redis
	waiting []limits.Claim // without their limits, which are the world's
	asked   map[limits.ClaimID]bool
	holding map[limits.ClaimID]limits.Claim
}

func newWorld(t *testing.T, s *server, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 5)), now: 1_700_000_000_000_000, client: s.client,
		limitOf: make(map[limits.Key]limits.Limit), state: new(limits.State),
	}
	if w.rng.IntN(2) == 0 {
		w.now = 1_000_000 + w.upTo(10_000*ms) // buckets are not full yet
	}
	w.crowded = seed%2 == 1
	w.pace = []limits.Time{ms, 40 * ms, 300 * ms}[seed%3]
	for i, kind := range []limits.Kind{limits.Host, limits.Host, limits.Account, limits.Account, limits.Pool}[:2+w.rng.IntN(4)] {
		key := limits.Key{Kind: kind, Name: string(rune('a' + i))}
		w.keys = append(w.keys, key)
		w.limitOf[key] = w.limit()
	}
	const epoch = 1_000_000
	namespace := fmt.Sprintf("rule-%d", seed)
	s.aged(namespace, epoch)
	w.state.Empty = epoch
	w.wakes = s.client.PSubscribe(context.Background(), "*")
	if _, err := w.wakes.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range 2 + w.rng.IntN(3) {
		r, err := newRedis(s.url(namespace), Options{}, timing{ttl: 1e9 * time.Second / 1000})
		if err != nil {
			t.Fatal(err)
		}
		r.name = "m" + strconv.Itoa(i)
		a := &actor{Redis: r, asked: make(map[limits.ClaimID]bool), holding: make(map[limits.ClaimID]limits.Claim)}
		w.members = append(w.members, a)
		w.decide(a, &limits.Batch{Max: 1})
	}
	return w
}

func (w *world) close() {
	for _, a := range w.members {
		_ = a.client.Close()
	}
	_ = w.wakes.Close()
}

func (w *world) upTo(most limits.Time) limits.Time { return limits.Time(w.rng.Int64N(int64(most))) }

// seldom is below n, and where it is crowded hardly ever 0, 1 or 2.
func (w *world) seldom(n int) int {
	if w.crowded {
		n *= 20
	}
	return w.rng.IntN(n)
}

func (w *world) limit() limits.Limit {
	l := limits.Limit{Concurrency: w.rng.Int64N(4)}
	if w.crowded {
		l.Concurrency = 1 + w.rng.Int64N(2)
	}
	if w.rng.IntN(2) == 0 && !w.crowded {
		l.Rate = []limits.Rate{{Tokens: 1, Per: 1e6}, {Tokens: 7, Per: 300_000}, {Tokens: 1, Per: 7919}, {Tokens: 11, Per: 3}}[w.rng.IntN(4)]
		l.Burst = 1 + w.rng.Int64N(12)
	}
	return l
}

// step is one thing that happens.
func (w *world) step() {
	switch w.seldom(60) {
	case 0:
		w.now += w.upTo(20_000 * ms)
	case 1:
		w.leave(w.members[w.rng.IntN(len(w.members))])
		return
	case 2:
		w.limitOf[w.keys[w.rng.IntN(len(w.keys))]] = w.limit()
	default:
		w.now += w.upTo(w.pace)
	}
	a := w.members[w.rng.IntN(len(w.members))]
	for range w.rng.IntN(4) {
		w.newClaim(a)
	}
	w.decide(a, w.batch(a))
}

func (w *world) newClaim(a *actor) {
	w.nextID++
	c := limits.Claim{ID: w.nextID, Rank: limits.Rank{
		Priority: w.rng.Int64N(3), Deadline: limits.Never, Since: w.now - w.upTo(1000*ms), Seq: int64(w.nextID),
	}}
	if w.rng.IntN(4) == 0 {
		c.Rank.Deadline = w.now + w.upTo(3000*ms)
	}
	if w.rng.IntN(3) == 0 {
		c.Pair = limits.PairKey("a", string(rune('c'+w.rng.IntN(2))))
	}
	needs := w.rng.IntN(1 << len(w.keys))
	if w.crowded {
		needs = []int{1, 1, 1, 1, 1, 1, 2, 3}[w.rng.IntN(8)]
	}
	for i, key := range w.keys {
		if needs&(1<<i) != 0 {
			c.Needs = append(c.Needs, limits.Need{Key: key, Cost: w.rng.Int64N(13)})
		}
	}
	a.waiting = append(a.waiting, c)
}

// batch has a give back some of what it holds, and ask for some of what it waits for.
func (w *world) batch(a *actor) *limits.Batch {
	b := &limits.Batch{Max: w.rng.IntN(5)}
	if w.crowded {
		b.Max++
	}
	for _, id := range sorted(a.holding) {
		switch n := w.rng.IntN(6); {
		case w.crowded && a.holding[id].Needs[0].Key == w.keys[1] && w.rng.IntN(50) > 0: // held for long
		case n == 0:
			b.Refunds = append(b.Refunds, id)
		case n <= 2 || w.crowded:
			b.Releases = append(b.Releases, id)
		}
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(c limits.Claim) bool {
		gone := w.rng.IntN(20) == 0 && !w.crowded
		if gone && a.asked[c.ID] {
			b.Withdrawn = append(b.Withdrawn, c.ID)
		}
		return gone
	})
	if w.seldom(25) == 0 {
		keys := append(slices.Clone(w.keys), limits.PairKey("a", "c"), limits.PairKey("a", "d"))
		b.Pauses = append(b.Pauses, limits.PauseRequest{Key: keys[w.rng.IntN(len(keys))], Until: w.now + w.upTo(500*ms) - 100*ms})
	}
	slices.SortFunc(a.waiting, func(c, d limits.Claim) int {
		if c.Rank.Before(d.Rank) {
			return -1
		}
		return 1
	})
	for _, c := range a.waiting {
		if again := w.rng.IntN(20); !a.asked[c.ID] || again == 0 || again < 16 && !w.crowded {
			b.Claims = append(b.Claims, w.stated(c))
		}
	}
	for i := range b.Claims {
		if i > 0 && w.rng.IntN(8) == 0 && !a.asked[b.Claims[i].ID] {
			b.Claims[i].Behind = 1 + w.rng.IntN(i)
		}
	}
	return b
}

// stated is the claim with the limits that its keys have now.
func (w *world) stated(c limits.Claim) limits.Claim {
	c.Needs = slices.Clone(c.Needs)
	for i := range c.Needs {
		n := &c.Needs[i]
		n.Limit = w.limitOf[n.Key]
		n.Cost = min(n.Cost, n.Limit.Burst)
	}
	return c
}

// decide has both decide, compares, and notes what a holds.
func (w *world) decide(a *actor, b *limits.Batch) {
	w.t.Helper()
	var want, got limits.Reply
	w.store()
	wantErr := w.state.SyncMember(a.name, w.now, b, &want)
	a.timing.at = w.now
	err := a.Sync(context.Background(), b, &got)
	var conflict, wanted *limits.Conflict
	if a, b := errors.As(wantErr, &wanted), errors.As(err, &conflict); a || b {
		if diff := cmp.Diff(wanted, conflict); diff != "" {
			w.t.Errorf("conflict (-want +got):\n%s%v", diff, err)
		}
		return
	} else if err != nil {
		w.t.Fatal(err)
	}
	got.Until = 0 // the lease, of which the rule knows nothing
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("%s at %d: %+v (-want +got):\n%s", a.name, w.now, *b, diff)
	}
	w.compareWakes()
	for _, id := range slices.Concat(b.Releases, b.Refunds) {
		delete(a.holding, id)
	}
	for i, c := range b.Claims {
		if front := c.Behind; front == 0 || want.Verdicts[front-1].Cause == limits.Granted {
			a.asked[c.ID] = true
		}
		if want.Verdicts[i].Cause == limits.Granted {
			a.holding[c.ID] = c
			a.waiting = slices.DeleteFunc(a.waiting, func(d limits.Claim) bool { return d.ID == c.ID })
		}
	}
}

// compareWakes reads what was published since the last time.
func (w *world) compareWakes() {
	w.t.Helper()
	w.client.Publish(context.Background(), "end", "")
	got := []string{}
	for {
		m, err := w.wakes.ReceiveMessage(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Channel == "end" {
			break
		}
		got = append(got, m.Channel[strings.LastIndexByte(m.Channel, ':')+1:])
	}
	want := slices.Clone(w.state.Wakes())
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("woken at %d (-want +got):\n%s", w.now, diff)
	}
}

func (w *world) leave(a *actor) {
	w.store()
	w.state.Leave(a.name, w.now)
	a.timing.at = w.now
	if _, err := a.speak(context.Background(), &request{Op: "leave"}); err != nil {
		w.t.Fatal(err)
	}
	w.compareWakes()
	clear(a.held)
	clear(a.holding)
	clear(a.asked)
	a.waiting = nil
	w.decide(a, &limits.Batch{Max: 1})
}

// store keeps of the State what is stored of it: twice, since a key that only claims
// which are not stored need is stored itself the first time.
func (w *world) store() {
	for range 2 {
		w.storeOnce()
	}
}

func (w *world) storeOnce() {
	shared := w.state.Shared(w.now)
	waiting := &limits.Stored{Members: shared.Members}
	shared.Members = nil
	next := new(limits.State)
	next.Load(&shared, w.now)
	for _, a := range w.members {
		held := w.state.Held(a.name)
		next.Load(&held, w.now)
		next.Load(&limits.Stored{Members: map[string][]limits.StoredClaim{a.name: nil}}, w.now)
	}
	next.Load(waiting, w.now)
	w.state = next
}

func sorted(m map[limits.ClaimID]limits.Claim) []limits.ClaimID {
	ids := []limits.ClaimID{}
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
