package schedule

import (
	"maps"
	"slices"

	"agentlimit/limits"
)

// Deferral is a job that was given up, because it cannot start in time.
type Deferral struct {
	Job   *Job
	Why   Why
	Key   limits.Key  // what it waited for; the zero Key for the global cap or its own times
	Until limits.Time // earliest moment worth trying again; zero if unknown
}

// Why says for what reason a job was deferred.
type Why uint8

// The reasons of a deferral.
const (
	Past      Why = iota // the deadline had passed before the job could wait
	NotYet               // not_before or the backoff ends after the deadline
	NoPermit             // no permit came free before the deadline
	NoTokens             // the bucket cannot hold the tokens before the deadline
	InPause              // the pause ends after the deadline
	LongPause            // the pause is longer than max_wait
	NoAnswer             // the coordinator did not answer before the deadline
)

// Deferred returns the jobs given up since the last call. The slice is valid
// until the schedule is used again.
func (s *Schedule) Deferred() []Deferral {
	deferred := s.deferred
	s.deferred = s.deferred[:0]
	return deferred
}

func (s *Schedule) deferJob(j *Job, d Deferral) {
	s.takeOut(j)
	s.deferred = append(s.deferred, d)
}

// late says whether it is certain that the job cannot start in time: even if
// nobody else took a token from now on, its own time, a pause or a bucket lets
// it start only after its deadline. Permits never make it certain.
func (s *Schedule) late(j *Job, now limits.Time) (Deferral, bool) {
	switch {
	case now > j.Deadline && j.phase == away:
		return Deferral{Job: j, Why: Past}, true
	case now > j.Deadline:
		return s.missed(j, now), true
	}
	d, at := s.earliest(j, now)
	if at > j.Deadline {
		return d, true
	}
	until, key, _ := j.lane.pause()
	if j.dueFor == Pause && j.due > until {
		key, until = limits.Key{}, j.due
	}
	if until.Sub(now) > j.MaxWait {
		return Deferral{j, LongPause, key, until}, true
	}
	return Deferral{}, false
}

// missed says why a job whose deadline has passed did not start. While nobody knows of
// anything that keeps it, because the coordinator is asked, or was not yet, it is what
// kept jobs last from one of its keys, unless every slot of this process is in use.
func (s *Schedule) missed(j *Job, now limits.Time) Deferral {
	l := j.lane
	d := Deferral{Job: j}
	cause := Global
	switch j.phase {
	case notDue:
		return Deferral{Job: j, Why: NotYet, Until: j.due}
	case queued:
		s.look(l, now)
		cause, d.Key = l.cause, l.block
	}
	for _, k := range l.keys {
		if cause == Global && !s.full {
			cause, d.Key = k.kept, k.id
		}
	}
	switch cause {
	case Global:
		if d.Why, d.Key = NoPermit, (limits.Key{}); j.phase == claimed || l.asking {
			d.Why = NoAnswer
			return d
		}
	case Rate:
		d.Why = NoTokens
	case Pause:
		d.Why = InPause
	default:
		d.Why = NoPermit
	}
	if _, at := s.earliest(j, now); at > now {
		d.Until = at
	}
	return d
}

// earliest returns when the job's own times, its pauses and its buckets allow a
// start, if nobody else takes a token from now on, and which of them is last.
func (s *Schedule) earliest(j *Job, now limits.Time) (Deferral, limits.Time) {
	d, at := Deferral{Job: j}, now
	later := func(t limits.Time, why Why, key limits.Key) {
		if t > at {
			d, at = Deferral{j, why, key, t}, t
		}
	}
	l := j.lane
	later(j.due, NotYet, limits.Key{})
	later(l.pairPause, InPause, l.pair)
	for i, k := range l.keys {
		later(k.pause, InPause, k.id)
		later(k.tokensAt(j.cost(i), now), NoTokens, k.id)
	}
	return d, at
}

// Pause notes that a service asked for a pause of one key, and tells the
// coordinator with the next batch. Of several pauses the longest holds.
func (s *Schedule) Pause(key limits.Key, until, now limits.Time) {
	s.news.Pauses = append(s.news.Pauses, limits.PauseRequest{Key: key, Until: until})
	s.notePause(key, until, now)
}

func (s *Schedule) notePause(key limits.Key, until, now limits.Time) {
	if until <= max(now, s.pauses[key]) {
		return
	}
	s.prunePauses(now)
	s.pauses[key] = until
	if k := s.keys[key]; k != nil {
		k.extend(until)
		s.saversChanged(k, nil)
	}
	for _, l := range s.lanesOf(key) {
		if key.Kind == limits.Pair {
			l.pairPause = until
			s.savedInVain(l)
		}
		if l.jobs.len() > 0 { // from now on it is the pause that they wait for
			l.blame(Pause, key, now)
		}
		for _, j := range slices.Concat(l.jobs.items, l.later) {
			if d, late := s.late(j, now); late {
				s.deferJob(j, d)
			}
		}
	}
}

// lanesOf returns the lanes that a pause of the key holds.
func (s *Schedule) lanesOf(key limits.Key) (all []*lane) {
	if key.Kind == limits.Pair {
		return slices.Clone(s.pairs[key]) // one may leave meanwhile
	}
	for _, l := range s.lanes {
		if slices.Contains(l.names, key) {
			all = append(all, l)
		}
	}
	return all
}

// prunePauses forgets the pauses that have ended, once there are many.
func (s *Schedule) prunePauses(now limits.Time) {
	const many = 1024
	if len(s.pauses) < max(many, 2*s.pausesKept) {
		return
	}
	maps.DeleteFunc(s.pauses, func(_ limits.Key, until limits.Time) bool { return until <= now })
	s.pausesKept = len(s.pauses)
}

// extend makes a pause last until then; a host's empties its bucket.
func (k *key) extend(until limits.Time) {
	if until <= k.pause {
		return
	}
	k.pause = until
	if k.id.Kind == limits.Host {
		k.bucket = limits.Bucket{Last: until}
	}
}

// watch is one job in the heap of one bucket that may make it late. It is
// certain to be late when the bucket, untouched from now on, holds its cost only
// after its deadline; so all are ordered by deadline − cost/r, the last moment
// at which the bucket may be empty.
type watch struct {
	job   *Job
	last  limits.Time
	place int32
}

// watch enters the job with the buckets that may make it late.
func (s *Schedule) watch(j *Job) {
	j.watches = j.watches[:0]
	for i, k := range j.lane.keys {
		cost := j.cost(i)
		if cost == 0 {
			k.anyFree = true
			continue
		}
		k.minCost = min(k.minCost, cost)
		if k.limit.Rate.Per > 0 && j.Deadline != limits.Never {
			last := j.Deadline - limits.Time(cost*k.limit.Rate.Per/k.limit.Rate.Tokens)
			j.watches = append(j.watches, watch{job: j, last: last})
		}
	}
	if j.Deadline == limits.Never {
		return
	}
	s.deadlines.push(j)
	j.eachWatch(func(k *key, w *watch) { k.late.push(w) })
}

// unwatch is the reverse of watch.
func (s *Schedule) unwatch(j *Job) {
	s.deadlines.remove(j)
	j.eachWatch(func(k *key, w *watch) { k.late.remove(w) })
	j.watches = j.watches[:0]
}

// eachWatch calls f with the job's watches and their keys.
func (j *Job) eachWatch(f func(*key, *watch)) {
	n := 0
	for i, k := range j.lane.keys {
		if n < len(j.watches) && k.takes(j.cost(i)) {
			f(k, &j.watches[n])
			n++
		}
	}
}

// deferLate defers the jobs that the key's bucket has made certain to be late.
func (s *Schedule) deferLate(k *key, now limits.Time) {
	if k.limit.Rate.Per == 0 {
		return
	}
	empty := k.bucket.Last - limits.Time(k.bucket.Level/k.limit.Rate.Tokens)
	for k.late.len() > 0 && k.late.top().last <= empty+1 {
		j := k.late.top().job
		d, late := s.late(j, now)
		if !late || j.phase == claimed {
			return
		}
		s.deferJob(j, d)
	}
}
