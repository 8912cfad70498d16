package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// oracle is the slow and obvious twin of schedule and State: it knows every
// waiting call and every key, decides nothing, and judges what they did. It
// shares no code with them.
type oracle struct {
	t       *testing.T
	sim     *sim
	keys    map[limits.Key]*oracleKey
	waiting map[*call]*waiter
	lanes   map[string]limits.Time // last start, or one before the first arrival
	running int
	could   map[*call]bool // start when the batch under way was asked for
}

type oracleKey struct {
	limit limits.Limit
	inUse int64
	level int64 // token·Per
	last  limits.Time
	pause limits.Time
}

type waiter struct {
	due    limits.Time
	passed int // claims of lower rank admitted on one of its keys
}

func laneName(c *call) string {
	if c.lane == "" {
		c.lane = fmt.Sprint(c.Host, "|", c.Account, "|", c.Pools)
	}
	return c.lane
}

func keysOf(c *call) []limits.Key {
	if c.keys == nil {
		c.keys = makeKeys(c)
	}
	return c.keys
}

func makeKeys(c *call) []limits.Key {
	keys := []limits.Key{}
	if c.Host != "" {
		keys = append(keys, limits.Key{Kind: limits.Host, Name: c.Host})
	}
	if c.Account != "" {
		keys = append(keys, limits.Key{Kind: limits.Account, Name: c.Account})
	}
	for _, p := range c.Pools {
		keys = append(keys, limits.Key{Kind: limits.Pool, Name: p})
	}
	return keys
}

func costAt(c *call, i int) int64 {
	if c.Costs == nil {
		return 1
	}
	return c.Costs[i]
}

func (o *oracle) key(k limits.Key) *oracleKey {
	if o.keys[k] == nil {
		l := o.sim.table.For(k)
		o.keys[k] = &oracleKey{limit: l, level: l.Burst * l.Rate.Per, last: o.sim.now}
	}
	ok := o.keys[k]
	if r := ok.limit.Rate; r.Per > 0 && o.sim.now > ok.last {
		full := ok.limit.Burst * r.Per
		for ok.last < o.sim.now && ok.level < full { // second by second: nothing overflows
			step := min(second, o.sim.now-ok.last)
			ok.level = min(full, ok.level+int64(step)*r.Tokens)
			ok.last += step
		}
		ok.last = o.sim.now
	}
	return ok
}

// ready returns when k's bucket, untouched, holds cost tokens.
func (k *oracleKey) ready(cost int64, now limits.Time) limits.Time {
	if k.limit.Rate.Per == 0 || cost == 0 {
		return now
	}
	at, level := max(now, k.last), k.level
	for level < cost*k.limit.Rate.Per {
		missing := (cost*k.limit.Rate.Per - level + k.limit.Rate.Tokens - 1) / k.limit.Rate.Tokens
		at += limits.Time(missing)
		level += missing * k.limit.Rate.Tokens
	}
	return at
}

func (o *oracle) pausedUntil(c *call) limits.Time {
	until := limits.Time(0)
	for _, k := range keysOf(c) {
		until = max(until, o.key(k).pause)
	}
	if c.Host != "" && c.Account != "" {
		until = max(until, o.key(limits.PairKey(c.Host, c.Account)).pause)
	}
	return until
}

// before is the order of the waiting, obvious version.
func (o *oracle) before(a, b *call) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if a.Deadline != b.Deadline {
		return a.Deadline < b.Deadline
	}
	if x, y := o.lanes[laneName(a)], o.lanes[laneName(b)]; x != y {
		return x < y
	}
	return a.Seq < b.Seq
}

// heads returns the first of each lane's calls that are due.
func (o *oracle) heads() []*call {
	first := map[string]*call{}
	for c, w := range o.waiting {
		if w.due > o.sim.now {
			continue
		}
		if h := first[laneName(c)]; h == nil || o.before(c, h) {
			first[laneName(c)] = c
		}
	}
	var heads []*call
	for _, c := range first {
		heads = append(heads, c)
	}
	return heads
}

func (o *oracle) permitted(c *call) bool {
	for _, k := range keysOf(c) {
		if ok := o.key(k); ok.limit.Concurrency > 0 && ok.inUse >= ok.limit.Concurrency {
			return false
		}
	}
	return true
}

// fits reports whether c could start now, reserves left aside.
func (o *oracle) fits(c *call) bool {
	if !o.permitted(c) || o.pausedUntil(c) > o.sim.now {
		return false
	}
	for i, k := range keysOf(c) {
		if o.key(k).ready(costAt(c, i), o.sim.now) > o.sim.now {
			return false
		}
	}
	return true
}

// earliest returns when only time would let c start.
func (o *oracle) earliest(c *call, but *oracleKey) limits.Time {
	at := max(o.sim.now, o.pausedUntil(c))
	if w := o.waiting[c]; w != nil {
		at = max(at, w.due)
	}
	for i, k := range keysOf(c) {
		if o.key(k) != but {
			at = max(at, o.key(k).ready(costAt(c, i), o.sim.now))
		}
	}
	return at
}

// reserved reports whether one of the reserves holds c back.
func (o *oracle) reserved(c *call, heads []*call) bool {
	for i, k := range keysOf(c) {
		ok := o.key(k)
		for _, w := range heads {
			if w == c || !o.before(w, c) || !slices.Contains(keysOf(w), k) {
				continue
			}
			if o.waiting[w].passed >= 64 && ok.limit.Concurrency-ok.inUse == 1 {
				return true
			}
			cost := costAt(w, slices.Index(keysOf(w), k))
			if ok.limit.Rate.Per == 0 || costAt(c, i) == 0 || cost == 0 || !o.permitted(w) {
				continue
			}
			per, tokens := ok.limit.Rate.Per, ok.limit.Rate.Tokens
			span := int64(o.earliest(w, ok) - o.sim.now)
			later := min(ok.limit.Burst*per, ok.level-costAt(c, i)*per+span*tokens)
			if later < cost*per {
				return true
			}
		}
	}
	return false
}

// started judges one start, before it counts.
func (o *oracle) started(c *call) {
	if !o.fits(c) || c.Deadline < o.sim.now || o.waiting[c].due > o.sim.now {
		for i, k := range keysOf(c) {
			o.t.Logf("%v cost %d: %+v", k, costAt(c, i), *o.key(k))
		}
		o.t.Fatalf("at %d: call %d started over a limit, late or early", o.sim.now, c.Seq)
	}
	if o.running >= o.sim.global {
		o.t.Fatalf("at %d: call %d started over the global cap", o.sim.now, c.Seq)
	}
	heads := o.heads()
	for _, h := range heads {
		if laneName(h) == laneName(c) && h != c {
			o.t.Fatalf("at %d: call %d passed call %d, the head of its lane", o.sim.now, c.Seq, h.Seq)
		}
		// One batch is decided as a whole: who may start only because of a
		// grant in it comes with the next, at the same moment.
		if h != c && o.could[h] && o.before(h, c) && o.fits(h) && !o.reserved(h, heads) {
			o.t.Fatalf("at %d: call %d started before call %d, which is better-ranked and could start", o.sim.now, c.Seq, h.Seq)
		}
	}
	o.running++
	for i, k := range keysOf(c) {
		ok := o.key(k)
		ok.inUse++
		if ok.limit.Rate.Per > 0 {
			ok.level -= costAt(c, i) * ok.limit.Rate.Per
		}
	}
	for w := range o.waiting {
		if w != c && o.waiting[w].due <= o.sim.now && o.before(w, c) {
			for _, k := range keysOf(c) {
				if slices.Contains(keysOf(w), k) {
					o.waiting[w].passed++
					break
				}
			}
		}
	}
	delete(o.waiting, c)
	o.lanes[laneName(c)] = o.sim.now
}

// asking notes who could start as a batch is asked for.
func (o *oracle) asking() {
	o.could = map[*call]bool{}
	heads := o.heads()
	for _, h := range heads {
		o.could[h] = o.fits(h) && !o.reserved(h, heads)
	}
}

// settled judges the moment after everything that could start has.
func (o *oracle) settled() {
	heads := o.heads()
	for _, h := range heads {
		if o.running < o.sim.global && o.fits(h) && !o.reserved(h, heads) {
			o.t.Fatalf("at %d: call %d (%s) could start and waits", o.sim.now, h.Seq, laneName(h))
		}
	}
	for c := range o.waiting {
		if at := o.earliest(c, nil); at > c.Deadline {
			o.t.Fatalf("at %d: call %d waits, though it cannot start before %d, after its deadline %d", o.sim.now, c.Seq, at, c.Deadline)
		}
	}
}

// randomRun makes a small world at random and runs it under the oracle.
func randomRun(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := newSim(t, randomTable(t, rng), 1+rng.IntN(6))
	o := &oracle{t: t, sim: s, keys: map[limits.Key]*oracleKey{}, waiting: map[*call]*waiter{}, lanes: map[string]limits.Time{}}
	var calls []*call
	for i := range 5 + rng.IntN(60) {
		calls = append(calls, randomCall(rng, s.table, int64(i)))
	}
	for range rng.IntN(4) {
		key := limits.Key{Kind: limits.Host, Name: "h" + strconv.Itoa(rng.IntN(3))}
		if rng.IntN(2) == 0 {
			key = limits.PairKey(key.Name, "a"+strconv.Itoa(rng.IntN(3)))
		}
		at := limits.Time(rng.IntN(3000)) * ms
		s.pauseAt = append(s.pauseAt, at)
		s.pauses = append(s.pauses, limits.PauseRequest{Key: key, Until: at + limits.Time(rng.IntN(2000))*ms})
	}
	slices.Sort(s.pauseAt)
	if seed%4 == 0 {
		s.lose = func() (asked, answered bool) { return rng.IntN(8) == 0, rng.IntN(8) == 0 }
	}
	o.watch(calls)
	s.run(calls)
	for _, k := range o.keys {
		if k.inUse != 0 {
			t.Fatalf("at the end %d permits are out", k.inUse)
		}
	}
	if len(o.waiting) > 0 {
		t.Fatalf("%d calls were lost", len(o.waiting))
	}
	checkLedger(t, s)
	t.Logf("calls %d steps %d batches %d claims %d now %d", len(calls), s.steps, s.batches, s.claims, s.now)
}

// checkLedger asks the State for every permit again: all must be back.
func checkLedger(t *testing.T, s *sim) {
	id := limits.ClaimID(1 << 40)
	for _, kind := range []limits.Kind{limits.Host, limits.Account, limits.Pool} {
		for i := range 4 {
			key := limits.Key{Kind: kind, Name: string("?hap"[kind]) + strconv.Itoa(i)}
			limit := s.table.For(key)
			var batch limits.Batch
			for range limit.Concurrency {
				id++
				batch.Claims = append(batch.Claims, limits.Claim{ID: id, Needs: []limits.Need{{Key: key, Limit: limit}}, Rank: limits.Rank{Deadline: limits.Never}})
			}
			batch.Max = len(batch.Claims)
			s.state.Sync(s.now+1e12, &batch, &s.reply)
			for _, v := range s.reply.Verdicts {
				if v.Cause != limits.Granted {
					t.Fatalf("%v: a permit did not come back: %+v", key, v)
				}
			}
		}
	}
}

// watch hangs the oracle into the simulation.
func (o *oracle) watch(calls []*call) {
	for _, c := range calls {
		if c.Deadline == 0 {
			c.Deadline = limits.Never
		}
		o.arrive(c, 0)
	}
	s := o.sim
	s.onStart = func(start schedule.Start) {
		c := start.Job.Ref.(*call)
		if got, want := start.Waited.Total(), s.now-c.addedAt; got != want {
			o.t.Fatalf("at %d: call %d waited %d by its parts, want %d", s.now, c.Seq, got, want)
		}
		o.started(c)
	}
	s.onEnd = func(c *call) {
		o.running--
		for _, k := range keysOf(c) {
			o.key(k).inUse--
		}
		if len(c.starts) <= c.repeats {
			o.arrive(c, s.now+c.backoff)
		}
	}
	s.onPause = func(p limits.PauseRequest) {
		k := o.key(p.Key)
		if p.Until > max(k.pause, s.now) {
			k.pause = p.Until
			if p.Key.Kind == limits.Host {
				k.level, k.last = 0, p.Until
			}
		}
	}
	s.onDefer = func(d schedule.Deferral) {
		c := d.Job.Ref.(*call)
		if s.now <= c.Deadline && o.earliest(c, nil) <= c.Deadline {
			o.t.Fatalf("at %d: call %d given up (%+v), though it may start by %d", s.now, c.Seq, d, c.Deadline)
		}
		delete(o.waiting, c)
	}
	s.settled, s.asking = o.settled, o.asking
}

func (o *oracle) arrive(c *call, due limits.Time) {
	c.addedAt = o.sim.now
	o.waiting[c] = &waiter{due: due}
	fresh := true
	for other := range o.waiting {
		if other != c && laneName(other) == laneName(c) {
			fresh = false
		}
	}
	if _, known := o.lanes[laneName(c)]; !known || fresh && !o.laneRuns(c) {
		o.lanes[laneName(c)] = o.sim.now - 1
	}
}

// laneRuns reports whether another call of c's lane is under way.
func (o *oracle) laneRuns(c *call) bool {
	for _, e := range o.sim.running {
		if laneName(e.call) == laneName(c) {
			return true
		}
	}
	return false
}

func randomTable(t *testing.T, rng *rand.Rand) *limits.Table {
	var entries []entry
	for _, kind := range []limits.Kind{limits.Host, limits.Account, limits.Pool} {
		for i := range 3 {
			e := entry{kind: kind, pattern: string("?hap"[kind]) + strconv.Itoa(i)}
			if rng.IntN(3) > 0 {
				e.concurrency = 1 + int64(rng.IntN(3))
			}
			if rng.IntN(3) == 0 {
				e.rate = strconv.Itoa(1+rng.IntN(9)) + "/" + []string{"s", "2s", "300ms"}[rng.IntN(3)]
				e.burst = 1 + int64(rng.IntN(6))
			}
			entries = append(entries, e)
		}
	}
	return table(t, entries...)
}

func randomCall(rng *rand.Rand, table *limits.Table, seq int64) *call {
	c := &call{takes: limits.Time(1+rng.IntN(900)) * ms}
	c.Seq = seq
	name := func(letter string) string { return letter + strconv.Itoa(rng.IntN(3)) }
	if rng.IntN(8) > 0 {
		c.Host = name("h")
	}
	if rng.IntN(4) > 0 {
		c.Account = name("a")
	}
	for i := range 3 {
		if rng.IntN(5) == 0 {
			c.Pools = append(c.Pools, "p"+strconv.Itoa(i))
		}
	}
	if rng.IntN(2) == 0 {
		for _, k := range keysOf(c) {
			cost := int64(1)
			if burst := table.For(k).Burst; burst > 0 {
				cost = rng.Int64N(burst + 1)
			}
			c.Costs = append(c.Costs, cost)
		}
	} else if rng.IntN(4) == 0 {
		c.Priority = rng.Int64N(3)
	}
	if rng.IntN(3) == 0 {
		c.Deadline = limits.Time(rng.IntN(6000)) * ms
	}
	if rng.IntN(4) == 0 {
		c.repeats, c.backoff = 1+rng.IntN(2), limits.Time(rng.IntN(500))*ms
	}
	return c
}

// TestAgainstOracle judges many random runs; AGENTLIMIT_SEED repeats one.
func TestAgainstOracle(t *testing.T) {
	if seed, err := strconv.ParseUint(os.Getenv("AGENTLIMIT_SEED"), 10, 64); err == nil {
		randomRun(t, seed)
		return
	}
	runs := uint64(3000)
	if testing.Short() {
		runs = 300
	}
	for seed := range runs {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { randomRun(t, seed) }) {
			t.Fatalf("AGENTLIMIT_SEED=%d repeats it", seed)
		}
	}
}
