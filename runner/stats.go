package runner

import (
	"maps"
	"slices"
	"sync"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

// Stats counts what a run does, for those who watch it. It is safe for use by
// many goroutines. See [NewStats].
type Stats struct {
	limitOf func(limits.Key) limits.Limit

	mu      sync.Mutex // guards what follows
	summary Summary
	keys    map[limits.Key]*KeyStats
}

// Summary is a moment's view of a run, or its end.
type Summary struct {
	Jobs      int64                    // read so far
	Earlier   int64                    // of them, ended by an earlier run and left alone
	Waiting   int64                    // of them, not under way and not ended
	UnderWay  int64                    // attempts
	Longest   schedule.Wait            // of the jobs that wait, as of the last second or so
	PeakWay   int64                    // most attempts under way at once
	Held      time.Duration            // how long the attempts that have ended were under way, added up
	Attempts  int64                    // started
	Ended     map[results.Status]int64 // jobs whose record is written
	AllRead   bool                     // no more jobs will come
	TooMany   bool                     // because of MaxFailures
	Failures  int64                    // jobs that count for MaxFailures
	Unstarted int64
	// Unrecorded counts the jobs that ended, but whose record could not be written.
	Unrecorded int64
	Keys       []KeyStats // hosts, accounts and pools of the attempts, in order
}

// KeyStats is what one key has been used for.
type KeyStats struct {
	Key      limits.Key
	Limit    limits.Limit
	Started  int64 // attempts
	UnderWay int64
	Peak     int64
	Held     time.Duration // of the permits that have come back, added up
	Spent    int64         // tokens of attempts started
	Waited   results.Waits // of the attempts started
}

// Busy returns how long the calls made so far need at least: the time for which they
// held permits over how many there are, or the time in which the tokens beyond the
// burst refill; whichever is longer. ByRate says that it is the latter. A key without
// limits is never busy.
func (k *KeyStats) Busy() (busy time.Duration, byRate bool) {
	if most := k.Limit.Concurrency; most > 0 {
		busy = k.Held / time.Duration(most)
	}
	if r := k.Limit.Rate; r.Per > 0 {
		refill := float64(max(0, k.Spent-k.Limit.Burst)) * float64(r.Per) / float64(r.Tokens)
		if d := time.Duration(refill * float64(time.Microsecond)); d > busy {
			return d, true
		}
	}
	return busy, false
}

// NewStats returns counters at zero. limitOf says what each key allows; it may be
// nil as long as nothing starts.
func NewStats(limitOf func(limits.Key) limits.Limit) *Stats {
	return &Stats{
		limitOf: limitOf,
		summary: Summary{Ended: make(map[results.Status]int64)},
		keys:    make(map[limits.Key]*KeyStats),
	}
}

// Summary returns what was counted so far.
func (s *Stats) Summary() Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.summary
	sum.Ended = maps.Clone(sum.Ended)
	for _, k := range s.keys {
		sum.Keys = append(sum.Keys, *k)
	}
	slices.SortFunc(sum.Keys, func(a, b KeyStats) int { return a.Key.Compare(b.Key) })
	return sum
}

// update changes the summary under the lock.
func (s *Stats) update(f func(*Summary)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.summary)
}

// started counts one attempt.
func (s *Stats) started(start schedule.Start) { s.count(start, 1) }

// ended counts the end of one attempt at a time, or that one was not made after all.
func (s *Stats) ended(start schedule.Start, at limits.Time, made bool) {
	if !made {
		s.count(start, -1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held, sum := at.Sub(start.Admitted), &s.summary
	sum.PeakWay = max(sum.PeakWay, sum.UnderWay) // before each end there were most
	sum.UnderWay--
	sum.Held += held
	for _, key := range start.Keys {
		k := s.keys[key]
		k.Peak = max(k.Peak, k.UnderWay)
		k.UnderWay--
		k.Held += held
	}
}

// count adds an attempt that starts, or takes it away again (-1).
func (s *Stats) count(start schedule.Start, sign int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Attempts += sign
	s.summary.UnderWay += sign
	for i, key := range start.Keys {
		k := s.keys[key]
		if k == nil {
			k = &KeyStats{Key: key, Limit: s.limitOf(key)}
			s.keys[key] = k
		}
		k.Started += sign
		k.UnderWay += sign
		k.Spent += sign * start.Cost(i)
		k.Waited.Add(waits(start.Waited), float64(sign))
	}
}

// watchEvery is how often the longest wait is looked for, and watchCost what a
// job that waits adds to that: the look is at all of them, and should take no
// more than a hundredth of the time.
const (
	watchEvery = time.Second
	watchCost  = 10 * time.Microsecond
)

// watchWaits notes the longest wait if it is time to, and returns when it will
// be again.
func (r *run) watchWaits(now limits.Time) limits.Time {
	if now < r.watchAt {
		return r.watchAt
	}
	r.watchAt = now.Add(max(watchEvery, time.Duration(r.schedule.Waiting())*watchCost))
	var longest schedule.Wait
	if !r.stopped {
		longest = r.schedule.Longest(now)
	}
	r.cfg.Stats.update(func(s *Summary) { s.Longest = longest })
	return r.watchAt
}
