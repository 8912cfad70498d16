package schedule

import (
	"slices"

	"agentlimit/limits"
)

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
// given up since the last batch, and claims for at most max starts. It returns
// nil if there is nothing to say. The batch is the coordinator's until it is
// answered, by [Schedule.Answer] or [Schedule.Unanswered]; that must be before
// the next Ask, and everything else may be called meanwhile.
func (s *Schedule) Ask(now limits.Time, most int) *limits.Batch {
	s.batchNo++
	s.asked, s.needs, s.batch.Claims = s.asked[:0], s.needs[:0], s.batch.Claims[:0]
	s.batch.Max = most
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
	lanes := k.lanes.items
	front := append(s.frontier[:0], 0)
	defer func() { s.frontier = front[:0] }()
	for n := 0; n < lookahead && len(front) > 0; n++ {
		best := 0
		for i := 1; i < len(front); i++ {
			if lanes[front[i]].rank.Before(lanes[front[best]].rank) {
				best = i
			}
		}
		at := front[best]
		if seen := s.look(lanes[at], now); seen != blocked {
			return lanes[at], seen
		}
		front[best] = front[len(front)-1]
		front = front[:len(front)-1]
		for child := 2*at + 1; child <= 2*at+2 && int(child) < len(lanes); child++ {
			front = append(front, child)
		}
	}
	if len(front) == 0 {
		return nil, blocked
	}
	var champion *lane
	var sight sight
	for _, l := range lanes {
		if l.by != nil && l.by.full() {
			continue // as at the last look; most lanes are passed here
		}
		if champion == nil || l.rank.Before(champion.rank) {
			if seen := s.look(l, now); seen != blocked {
				champion, sight = l, seen
			}
		}
	}
	return champion, sight
}

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

// Answer takes the coordinator's reply to the batch that Ask returned. What
// follows from it is to be fetched by [Schedule.Started] and
// [Schedule.Deferred].
func (s *Schedule) Answer(reply *limits.Reply) {
	b := &s.batch
	now := reply.Now
	for _, level := range reply.Levels {
		s.learn(level, now)
	}
	lastGrant := -1
	for i, v := range reply.Verdicts { // first, so that what is held is right again
		if v.Cause == limits.Granted {
			s.granted(s.asked[i], now)
			lastGrant = i
		} else {
			s.putBack(s.asked[i])
		}
	}
	for i, v := range reply.Verdicts {
		if v.Cause == limits.Granted {
			continue
		}
		front := b.Claims[i].Behind
		if behind := front > 0 && reply.Verdicts[front-1].Cause != limits.Granted; !behind {
			s.refused(s.asked[i], v, i < lastGrant, now)
		}
	}
	s.asked = s.asked[:0]
	for _, level := range reply.Levels {
		if k := s.keys[level.Key]; k != nil {
			s.deferLate(k, now)
		}
	}
}

// Unanswered takes back the claims of a batch that no reply came to; what else
// was in the batch is said again with the next.
func (s *Schedule) Unanswered() {
	for _, a := range s.asked {
		s.putBack(a)
	}
	s.asked = s.asked[:0]
	b, n := &s.batch, &s.news
	n.Releases = slices.Concat(b.Releases, n.Releases)
	n.Refunds = slices.Concat(b.Refunds, n.Refunds)
	n.Withdrawn = slices.Concat(b.Withdrawn, n.Withdrawn)
	n.Pauses = slices.Concat(b.Pauses, n.Pauses)
}

func (s *Schedule) granted(a asked, now limits.Time) {
	j, l := a.job, a.lane
	if at, _, _ := l.pausedUntil(now); at > 0 { // it was paused since it was asked
		s.news.Refunds = append(s.news.Refunds, j.claim)
		if j.claim = 0; a.known {
			s.unknown(l)
		}
		a.known = false
		s.putBack(a)
		return
	}
	if !a.taken { // it was asked for only to make it known, and got through
		l.asking = false
		if j.phase != queued || l.jobs.top() != j {
			s.news.Refunds = append(s.news.Refunds, j.claim)
			s.saveNoMore(l)
			return
		}
		l.jobs.remove(j)
		l.since = now
		for _, k := range l.keys {
			k.held++
		}
		l.known = nil
	}
	if a.known || l.isSaver {
		s.unknown(l)
	}
	for i, k := range l.keys {
		if k.full() || k.takes(j.cost(i)) {
			s.saversChanged(k, l)
		}
	}
	l.settle(now)
	s.unwatch(j)
	j.phase = away
	s.waiting--
	s.started = append(s.started, Start{Job: j, Admitted: now, Waited: j.waited(), Keys: l.names, Costs: j.Costs})
	s.headChanged(l)
	if l.jobs.len() > 0 && !l.asking {
		s.look(l, now) // its wait counts for what blocks it now
	}
}

// waited returns what the job waited for between being added and the moment at
// which its lane was last settled.
func (j *Job) waited() Waits {
	w := j.own
	for cause := range j.before {
		w[cause] += j.lane.waited[cause] - j.before[cause]
	}
	return w
}

// putBack returns a claim that was not granted to its lane.
func (s *Schedule) putBack(a asked) {
	l := a.lane
	l.asking = false
	if !a.taken {
		if l.jobs.len() > 0 {
			s.offer(l.keys[0], l.rank)
		}
		return
	}
	for _, k := range l.keys {
		k.held--
		s.offerAll(k)
	}
	l.since = min(l.since, a.since)
	a.job.phase = queued
	if a.job.inDeadlines < 0 && a.job.Deadline != limits.Never {
		s.deadlines.push(a.job) // it passed meanwhile
	}
	l.jobs.push(a.job)
	if a.known && l.known == nil {
		l.known = a.job // withdrawn at once if it is no longer the head
	}
	s.headChanged(l)
}

// refused learns from a refusal, once the claim was put back. Outdated: a later
// claim of the batch was granted, which may have lifted what refused this one.
func (s *Schedule) refused(a asked, v limits.Verdict, outdated bool, now limits.Time) {
	j, l := a.job, a.lane
	if j.phase != queued || l.jobs.top() != j {
		if l.known != j {
			s.news.Withdrawn = append(s.news.Withdrawn, j.claim)
			s.saveNoMore(l)
		}
		return
	}
	l.known = j
	if now > j.Deadline {
		s.deferJob(j, s.missed(j, now))
	} else if r, late := s.late(j, now); late {
		s.deferJob(j, r)
	} else if v.Key != (limits.Key{}) {
		s.learnRefusal(l, j, v, outdated, now)
	}
}

// learnRefusal notes which key refused the lane's head.
func (s *Schedule) learnRefusal(l *lane, j *Job, v limits.Verdict, outdated bool, now limits.Time) {
	k := s.keys[v.Key]
	switch v.Cause {
	case limits.Permit:
		if !k.full() {
			l.doubted = j
			if !outdated {
				k.noPermit.add(l.rank, 0, v.At)
			}
		}
		s.saveNoMore(l)
		l.notPassed()
		if k.passed == nil || l.rank.Before(k.passed.rank) {
			if k.passed != nil {
				k.passed.passed = nil
			}
			k.passed, l.passed = l, k
		}
		return
	case limits.Tokens:
		cost := j.cost(l.indexOf(k))
		if k.tokensAt(cost, now) <= now {
			l.doubted = j
			if !outdated {
				k.noTokens.add(l.rank, cost, v.At)
			}
		}
	}
	l.notPassed()
	s.save(l, now)
}

// learn takes over what the coordinator says of a key.
func (s *Schedule) learn(level limits.Level, now limits.Time) {
	s.notePause(level.Key, level.Pause, now)
	k := s.keys[level.Key]
	if k == nil || k.limit.Rate.Per == 0 {
		return
	}
	expected := k.bucket
	if k.bucket = level.Bucket; now > expected.Last {
		expected.Refill(k.limit, now)
	}
	if k.bucket.Level < expected.Level { // others have taken tokens
		s.saversChanged(k, nil)
	}
}

// Started returns the jobs admitted since the last call. The slice is valid
// until the next Answer.
func (s *Schedule) Started() []Start {
	started := s.started
	s.started = s.started[:0]
	return started
}
