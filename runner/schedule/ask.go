package schedule

import "agentlimit/limits"

// lookahead is how many lanes of a key are looked at in exact order before all
// of them are, in the order in which they lie in memory.
const lookahead = 32

// asked is what one claim of the batch under way stands for.
type asked struct {
	job   *Job
	lane  *lane
	taken bool        // out of its lane, as a start was likely
	known bool        // the coordinator knew the job as waiting before
	since limits.Time // of the lane, before the claim
}

// Ask returns what to say to the coordinator next: what has come back and been
// given up since the last batch, and claims for at most most starts. It returns
// nil if there is nothing to say. The batch is the coordinator's until it is
// answered, by [Schedule.Answer] or [Schedule.Unanswered]; that must be before
// the next Ask, and everything else may be called meanwhile.
func (s *Schedule) Ask(now limits.Time, most int) *limits.Batch {
	s.batchNo++
	s.asked, s.needs, s.batch.Claims = s.asked[:0], s.needs[:0], s.batch.Claims[:0]
	s.batch.Max, s.full = most, most <= 0
	probing := false
	for starts := 0; starts < most && len(s.batch.Claims) < maxClaims && s.ready.len() > 0; {
		k := s.ready.top()
		l, seen := s.champion(k, now)
		if l == nil {
			s.ready.remove(k)
			continue
		}
		k.hope = l.rank
		s.ready.fix(k)
		if s.ready.top() != k {
			continue // another key may offer something better
		}
		if seen == waits {
			s.claim(l, false, now)
			s.save(l, now) // as the coordinator will, from this claim on
			continue
		}
		// A claim that may well be refused must not keep a permit from those
		// behind it, and they must not be passed by lower ranks if it is: so
		// it takes nothing beforehand, and only its like may follow.
		probe := l.doubtful()
		if probing && !probe {
			break
		}
		probing = probe
		s.askFirstWhoIsPassed(l, now)
		s.claim(l, !probe, now)
		starts++
	}
	b, n := &s.batch, &s.news
	b.Releases, n.Releases = n.Releases, b.Releases[:0]
	b.Refunds, n.Refunds = n.Refunds, b.Refunds[:0]
	b.Withdrawn, n.Withdrawn = n.Withdrawn, b.Withdrawn[:0]
	b.Pauses, n.Pauses = n.Pauses, b.Pauses[:0]
	if len(b.Claims)+len(b.Releases)+len(b.Refunds)+len(b.Withdrawn)+len(b.Pauses) == 0 {
		return nil
	}
	return b
}

// champion returns the best-ranked of the key's lanes that could start, or that
// the coordinator should know of; nil if there is none.
func (s *Schedule) champion(k *key, now limits.Time) (*lane, sight) {
	if k.lanes.len() == 0 {
		return nil, blocked
	}
	if until, shut := k.shut(now); shut {
		l := k.lanes.top()
		if until > now {
			s.wake(k, until)
		}
		if !l.asking {
			s.look(l, now) // so that its wait counts for what blocks it now
		}
		return nil, blocked
	}
	if l, seen, all := s.firstInOrder(k.lanes.items, now); l != nil || all {
		return l, seen
	}
	return s.bestOfAll(k.lanes.items, now)
}

// firstInOrder looks at the lanes of a heap from the best-ranked on, and returns
// the first worth asking for among the first lookahead; all reports that there
// are no more.
func (s *Schedule) firstInOrder(lanes []*lane, now limits.Time) (l *lane, seen sight, all bool) {
	type place struct {
		rank limits.Rank // copied: lanes lie all over the memory
		at   int
	}
	var room [lookahead + 2]place                      // each look takes one out and puts two in
	front := append(room[:0], place{lanes[0].rank, 0}) // whose parents were looked at
	for range lookahead {
		if len(front) == 0 {
			return nil, blocked, true
		}
		best := 0
		for i := 1; i < len(front); i++ {
			if front[i].rank.Before(front[best].rank) {
				best = i
			}
		}
		at := front[best].at
		if l := lanes[at]; !l.asBefore() {
			if seen := s.look(l, now); seen != blocked {
				return l, seen, false
			}
		}
		front[best] = front[len(front)-1]
		front = front[:len(front)-1]
		for child := 2*at + 1; child <= 2*at+2 && child < len(lanes); child++ {
			front = append(front, place{lanes[child].rank, child})
		}
	}
	return nil, blocked, len(front) == 0
}

// bestOfAll looks at all lanes, and returns the best-ranked worth asking for.
func (s *Schedule) bestOfAll(lanes []*lane, now limits.Time) (best *lane, seen sight) {
	for _, l := range lanes {
		if l.asBefore() {
			continue // most lanes are passed here
		}
		if best == nil || l.rank.Before(best.rank) {
			if s := s.look(l, now); s != blocked {
				best, seen = l, s
			}
		}
	}
	return best, seen
}

// asBefore reports whether the lane is blocked as it was at the last look.
func (l *lane) asBefore() bool { return l.by != nil && l.by.full() }

// doubtful reports whether a start that looks free may be refused: it was
// before, or a bucket saves tokens for a better-ranked lane.
func (l *lane) doubtful() bool {
	j := l.jobs.top()
	for i, k := range l.keys {
		if k.takes(j.cost(i)) && k.saver != nil && k.saver != l && k.saver.rank.Before(l.rank) {
			return true
		}
	}
	return l.doubted == j
}

// askFirstWhoIsPassed tells the coordinator of better-ranked lanes, blocked by
// permits, that l is about to pass on one of its keys: it counts how often that
// happens to them.
func (s *Schedule) askFirstWhoIsPassed(l *lane, now limits.Time) {
	for _, k := range l.keys {
		top := k.lanes.top()
		if !top.rank.Before(l.rank) || top.passed != nil || s.look(top, now) != blocked || top.asking {
			continue
		}
		by := s.keys[top.block]
		permit := top.cause == Host || top.cause == Account || top.cause == Pool
		if permit && (top.known == nil || by.passed == nil || top.rank.Before(by.passed.rank)) {
			s.claim(top, false, now)
		}
	}
}

// claim puts the lane's head into the batch. With taken the head leaves the lane
// and its permits and tokens count as gone, so that the next head may be asked
// for in the same batch.
func (s *Schedule) claim(l *lane, taken bool, now limits.Time) {
	j := l.jobs.top()
	if j.claim == 0 {
		s.lastClaim++
		j.claim = s.lastClaim
	}
	first := len(s.needs)
	for i, k := range l.keys {
		if len(l.names) > 0 {
			s.needs = append(s.needs, limits.Need{Key: k.id, Limit: k.limit, Cost: k.charge(j.cost(i))})
		}
	}
	c := limits.Claim{ID: j.claim, Needs: s.needs[first:len(s.needs):len(s.needs)], Pair: l.pair, Rank: l.rank}
	if l.batchNo == s.batchNo {
		c.Behind = l.inBatch
	}
	s.batch.Claims = append(s.batch.Claims, c)
	s.asked = append(s.asked, asked{j, l, taken, l.known == j, l.since})
	if !taken {
		l.asking = true
		return
	}
	l.settle(now)
	l.batchNo, l.inBatch = s.batchNo, len(s.batch.Claims)
	if l.known == j {
		l.known = nil // until the answer: leaving the lane is no withdrawal
	}
	j.phase = claimed
	l.jobs.remove(j)
	l.since = now
	for i, k := range l.keys {
		k.held++
		if k.takes(j.cost(i)) && k.tokensAt(j.cost(i), now) <= now {
			k.bucket.Take(k.limit, j.cost(i))
		}
	}
	s.headChanged(l)
}

// charge returns the tokens that a job pays for its cost: a key without a bucket
// takes none.
func (k *key) charge(cost int64) int64 {
	if k.limit.Rate.Per == 0 {
		return 0
	}
	return cost
}

// takes reports whether a job of that cost needs tokens of the key's bucket.
func (k *key) takes(cost int64) bool { return k.charge(cost) > 0 }
