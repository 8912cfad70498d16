package schedule

import "agentlimit/limits"

// key is what the schedule knows of one key: what this process holds of it, and
// what the coordinator last said.
type key struct {
	id      limits.Key
	limit   limits.Limit
	lanesIn int           // lanes that need it, those without a waiting job too
	lanes   heap[*lane]   // lanes with waiting jobs, best-ranked first
	held    int64         // permits held or asked for
	bucket  limits.Bucket // as last reported, less what was asked for since
	told    limits.Level  // as last reported
	pause   limits.Time
	minCost int64 // the smallest cost above zero that was ever asked of it
	anyFree bool  // a job that costs nothing was seen

	kept Cause // of what the key last kept a job from starting by; Global: nothing since the last start

	openedAt   limits.Time // when it was last shut no more
	openedFrom Cause       // of the wait until then

	hope     limits.Rank // nothing better can start here
	inReady  int32
	wakeAt   limits.Time
	inTimers int32

	noPermit refusal // although this process holds fewer than the cap
	noTokens refusal // although the bucket seems to hold enough
	passed   *lane   // best-ranked lane known to wait for this key's permits
	saver    *lane   // lane for which the coordinator saves this bucket's tokens
	savers   []*lane // lanes of this key that are the saver of some key

	late heap[*watch] // jobs that its bucket may make late
}

// refusal is an answer that this process could not foresee: it holds for every
// claim that is not better in rank or cheaper, until the first time worth asking
// again (zero: until something comes back) or an event.
type refusal struct {
	on    bool
	rank  limits.Rank
	cost  int64
	until limits.Time
}

// add widens the refusal by one answer; one that is over by now is forgotten.
func (r *refusal) add(rank limits.Rank, cost int64, until, now limits.Time) {
	if over := r.until > 0 && r.until <= now; over || !r.on {
		*r = refusal{true, rank, cost, until}
		return
	}
	if rank.Before(r.rank) {
		r.rank = rank
	}
	r.cost = min(r.cost, cost)
	if r.until == 0 || until > 0 && until < r.until {
		r.until = until
	}
}

// covers reports whether a claim of that rank and cost would be refused too.
func (r *refusal) covers(rank limits.Rank, cost int64, now limits.Time) bool {
	return r.on && (r.until == 0 || r.until > now) && cost >= r.cost && !rank.Before(r.rank)
}

func newKey(id limits.Key, limit limits.Limit) *key {
	k := &key{id: id, limit: limit, inReady: -1, inTimers: -1, minCost: limits.MaxCost}
	k.bucket = limits.Full(limit, 0)
	k.lanes = heap[*lane]{
		before: func(a, b *lane) bool { return a.rank.Before(b.rank) },
		place:  func(l *lane) *int32 { return l.placeIn(k) },
	}
	k.late = heap[*watch]{
		before: func(a, b *watch) bool { return a.last < b.last || a.last == b.last && a.job.Seq < b.job.Seq },
		place:  func(w *watch) *int32 { return &w.place },
	}
	return k
}

// offer puts the key among the ready ones, on the word that it may have
// something of that rank to start.
func (s *Schedule) offer(k *key, hope limits.Rank) {
	if k.inReady < 0 || hope.Before(k.hope) {
		k.hope = hope
		s.ready.fix(k)
	}
}

// offerAll puts the key among the ready ones after it may have come free.
func (s *Schedule) offerAll(k *key) {
	if k.lanes.len() > 0 {
		s.offer(k, k.lanes.top().rank)
	}
}

// wake has the key looked at again at that time.
func (s *Schedule) wake(k *key, at limits.Time) {
	if at != limits.Never && (k.inTimers < 0 || at < k.wakeAt) {
		k.wakeAt = at
		s.timers.fix(k)
	}
}

// full reports whether this process itself holds every permit.
func (k *key) full() bool { return k.limit.Concurrency > 0 && k.held >= k.limit.Concurrency }

// shut reports whether no lane of the key can start, and when that may change
// (zero: when a permit comes back).
func (k *key) shut(now limits.Time) (until limits.Time, shut bool) {
	switch {
	case k.full():
		return 0, true
	case k.pause > now:
		return k.pause, true
	case k.dry(now):
		return k.turnAt(k.minCost, now), true
	}
	return 0, false
}

// dry reports whether the bucket holds too little for every lane.
func (k *key) dry(now limits.Time) bool {
	return k.limit.Rate.Per > 0 && !k.anyFree && k.turnAt(k.minCost, now) > now
}

// tokensAt returns when the bucket will hold cost tokens.
func (k *key) tokensAt(cost int64, now limits.Time) limits.Time {
	if !k.takes(cost) {
		return now
	}
	if now > k.bucket.Last {
		k.bucket.Refill(k.limit, now)
	}
	return k.bucket.Ready(k.limit, cost)
}

// turnAt returns when cost tokens may come to this process: there may be others whose
// turn is before, but who may leave.
func (k *key) turnAt(cost int64, now limits.Time) limits.Time {
	at := k.tokensAt(cost, now)
	if k.told.Ahead > 0 && k.takes(cost) {
		at = max(at, k.told.Turn(k.limit, cost))
	}
	return at
}

// sight is what a look at a lane showed.
type sight uint8

const (
	blocked sight = iota // nothing to ask
	waits                // only time keeps it, and the coordinator should know
	free                 // it could start
)

// look says whether the lane's head could start now, and notes what it waits
// for if not. The order is the one in which coordinators check.
func (s *Schedule) look(l *lane, now limits.Time) sight {
	if l.asking {
		return blocked
	}
	l.by = nil
	at, _, on := l.pause()
	cause := Pause
	if at <= now {
		at = 0
	}
	for _, k := range l.keys {
		if !k.permits(l.rank, now) {
			if at == 0 {
				at, on, cause = k.noPermit.until, k, causeOf(k.id.Kind)
				l.by = k
			}
			s.blameAndWake(l, at, on, cause, now)
			return blocked
		}
	}
	j, saved := l.jobs.top(), false
	for i, k := range l.keys {
		cost := j.cost(i)
		if !k.takes(cost) {
			continue
		}
		ready := k.turnAt(cost, now)
		if ready <= now && k.noTokens.covers(l.rank, cost, now) {
			ready, saved = k.noTokens.until, true
		}
		if ready > now && at == 0 {
			at, on, cause = ready, k, Rate
		}
	}
	if at == 0 {
		l.blame(Global, limits.Key{}, now)
		return free
	}
	s.blameAndWake(l, at, on, cause, now)
	if !saved && s.wouldSave(l, now) {
		return waits
	}
	return blocked
}

// permits reports whether a claim of that rank may hope for a permit.
func (k *key) permits(rank limits.Rank, now limits.Time) bool {
	return !k.full() && !k.noPermit.covers(rank, 0, now)
}

// blameAndWake notes that the key blocks the lane, and until when (zero: until
// a permit comes back).
func (s *Schedule) blameAndWake(l *lane, at limits.Time, on *key, cause Cause, now limits.Time) {
	block := on.id
	if cause == Pause && at == l.pairPause {
		block = l.pair
	}
	l.blame(cause, block, now)
	if cause != Pause {
		on.kept = cause
	}
	if at > now {
		s.wake(on, at)
	}
}
