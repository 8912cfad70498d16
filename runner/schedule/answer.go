package schedule

import (
	"slices"

	"agentlimit/limits"
)

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
	for _, a := range s.asked { // what was heard meanwhile may have made them late
		if a.job.phase == queued {
			if d, late := s.late(a.job, now); late {
				s.deferJob(a.job, d)
			}
		}
	}
	s.asked = s.asked[:0]
	for _, level := range reply.Levels {
		if k := s.keys[level.Key]; k != nil {
			s.deferLate(k, now)
		}
	}
}

// Unanswered takes back the claims of a batch that no reply came to, which may have
// been granted all the same: the next batch withdraws them, and says again what else
// was in this one.
func (s *Schedule) Unanswered() {
	for _, a := range s.asked {
		s.news.Withdrawn = append(s.news.Withdrawn, a.job.claim)
		s.disown(a)
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
	paused, _, _ := l.pause()
	passed := !a.taken && (j.phase != queued || l.jobs.top() != j)
	if paused > now || passed || j.phase == away { // it was paused, passed or given up meanwhile
		s.news.Refunds = append(s.news.Refunds, j.claim)
		s.disown(a)
		return
	}
	if !a.taken { // it was asked for only to make it known, and got through
		l.asking = false
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
		k.kept = Global
		if k.full() || k.takes(j.cost(i)) {
			s.saversChanged(k, l)
		}
	}
	l.settle(now)
	s.unwatch(j)
	j.phase = away
	s.waiting--
	waited := j.waited()
	waited.shorten(l.settled - now)
	s.started = append(s.started, Start{Job: j, Claim: j.claim, Admitted: now, Waited: waited, Keys: l.names})
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

// disown returns a claim to its lane that the coordinator is to forget. The job will
// ask as another.
func (s *Schedule) disown(a asked) {
	a.job.claim = 0
	if a.known || a.lane.isSaver {
		s.unknown(a.lane)
	}
	if a.known = false; a.taken {
		a.lane.payBack(a.job)
	}
	s.putBack(a)
}

// payBack returns to the buckets what was taken from them for the job.
func (l *lane) payBack(j *Job) {
	for i, k := range l.keys {
		if k.takes(j.cost(i)) {
			k.bucket.Refund(k.limit, j.cost(i))
		}
	}
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
	if a.job.phase == away { // its deadline has passed
		s.headChanged(l)
		s.leave(l)
		return
	}
	a.job.phase = queued
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
	if v.Key != (limits.Key{}) {
		s.learnRefusal(l, j, v, outdated, now)
	}
}

// learnRefusal notes which key refused the lane's head.
func (s *Schedule) learnRefusal(l *lane, j *Job, v limits.Verdict, outdated bool, now limits.Time) {
	k := s.keys[v.Key]
	switch v.Cause {
	case limits.Permit:
		k.kept = causeOf(k.id.Kind)
		if !k.full() {
			l.doubted = j
			if !outdated {
				k.noPermit.add(l.rank, 0, v.At, now)
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
		k.kept = Rate
		cost := j.cost(slices.Index(l.keys, k))
		if k.tokensAt(cost, now) <= now {
			l.doubted = j
			if !outdated {
				k.noTokens.add(l.rank, cost, v.At, now)
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
	k.told = level
	if k.bucket = level.Bucket; now > expected.Last {
		expected.Refill(k.limit, now)
	}
	switch {
	case k.bucket.Level < expected.Level: // others have taken tokens
		s.saversChanged(k, nil)
	case k.bucket.Level > expected.Level: // or given them back
		s.offerAll(k)
	}
}

// Started returns the jobs admitted since the last call. The slice is valid
// until the next Answer.
func (s *Schedule) Started() []Start {
	started := s.started
	s.started = s.started[:0]
	return started
}
