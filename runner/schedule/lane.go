package schedule

import (
	"slices"
	"strings"

	"agentlimit/limits"
)

// lane is the waiting jobs that need the same set of keys.
type lane struct {
	id        laneID
	keys      []*key
	names     []limits.Key // of keys; empty if the lane has none
	at        []int32      // places in the keys' heaps
	pair      limits.Key
	pairPause limits.Time
	jobs      heap[*Job]
	later     []*Job      // of its jobs, those that are not yet due
	jobsIn    int         // jobs that wait here, are not yet due, or run
	since     limits.Time // when it last started a job; before it came to be if never
	rank      limits.Rank // of its head; right while it has one

	// What the coordinator knows of the lane.
	known   *Job // refused, and waiting there; nil if none
	doubted *Job // its head, if that was refused although it seemed free
	asking  bool // its head is in the batch under way without being taken out
	passed  *key // whose permits block it, if it is that key's best-ranked
	isSaver bool // one of its buckets is saved for it
	inBatch int  // 1 + place of its last claim in batch batchNo
	batchNo uint64

	// Whom the lane has waited for, up to settled.
	cause   Cause
	block   limits.Key
	by      *key // that had no permit at the last look; nil if that was not it
	settled limits.Time
	waited  Waits
}

// Cause is what a job waits for, as its record tells.
type Cause uint8

// The causes of a wait, in the order of [Waits].
const (
	Global Cause = iota
	Host
	Account
	Pool
	Rate
	Pause
	Backoff
	NotBefore
)

// Waits is how long a job waited, by [Cause], in microseconds.
type Waits [NotBefore + 1]limits.Time

// Total returns the whole wait.
func (w Waits) Total() limits.Time {
	var total limits.Time
	for _, part := range w {
		total += part
	}
	return total
}

// shorten takes away what was counted after a decision that became known late, from
// the longest parts.
func (w *Waits) shorten(by limits.Time) {
	for by > 0 {
		longest := 0
		for cause := range w {
			if w[cause] > w[longest] {
				longest = cause
			}
		}
		if w[longest] == 0 {
			return
		}
		cut := min(by, w[longest])
		w[longest] -= cut
		by -= cut
	}
}

// rank returns the job's rank in a lane that started one at since.
func (j *Job) rank(since limits.Time) limits.Rank {
	return limits.Rank{Priority: j.Priority, Deadline: j.Deadline, Since: since, Seq: j.Seq}
}

func jobBefore(a, b *Job) bool { return a.rank(0).Before(b.rank(0)) }

// placeIn returns where the lane keeps its place in k's heap.
func (l *lane) placeIn(k *key) *int32 { return &l.at[slices.Index(l.keys, k)] }

// settle adds the time since the last look to what blocked the lane then. A pause
// blocks until its end. A lane that nothing blocked, or whose pause is over, waited
// for its turn on a key that was used up after the look; if none was, it waited for
// the global cap.
func (l *lane) settle(now limits.Time) {
	if now <= l.settled {
		return // a decision from before the last look, which came late
	}
	cause := l.cause
	if end, _, _ := l.pause(); cause == Pause && end < now {
		l.waited[Pause] += max(0, end-l.settled)
		l.settled, cause = max(l.settled, end), Global
	}
	if cause == Global {
		for i := len(l.keys) - 1; i >= 0; i-- { // the first in admission order wins
			if k := l.keys[i]; k.full() {
				cause = causeOf(k.id.Kind)
			} else if k.openedAt > l.settled {
				cause = k.openedFrom
			} else if k.dry(now) {
				cause = Rate
			}
		}
	}
	l.waited[cause] += now - l.settled
	l.settled = now
}

// pause returns when the last of the lane's pauses ends, or ended, whose it is, and a
// key that may be woken then.
func (l *lane) pause() (end limits.Time, of limits.Key, on *key) {
	end, of, on = l.pairPause, l.pair, l.keys[0]
	for _, k := range l.keys {
		if k.pause > end {
			end, of, on = k.pause, k.id, k
		}
	}
	return end, of, on
}

// blame notes what blocks the lane from now on.
func (l *lane) blame(cause Cause, block limits.Key, now limits.Time) {
	if cause != l.cause || block != l.block {
		l.settle(now)
		l.cause, l.block = cause, block
	}
}

// causeOf returns the cause of a wait for a permit of a key of that kind.
func causeOf(kind limits.Kind) Cause {
	return [...]Cause{limits.Global: Global, limits.Host: Host, limits.Account: Account, limits.Pool: Pool}[kind]
}

// headChanged puts the lane where its new head belongs, or out of its keys'
// heaps if it has none. The coordinator hears that the old head waits no longer.
func (s *Schedule) headChanged(l *lane) {
	if l.known != nil && (l.jobs.len() == 0 || l.jobs.top() != l.known) {
		s.withdraw(l)
	}
	if l.jobs.len() == 0 {
		for _, k := range l.keys {
			k.lanes.remove(l)
		}
		return
	}
	l.rank = l.jobs.top().rank(l.since)
	for _, k := range l.keys {
		k.lanes.fix(l)
	}
	s.offer(l.keys[0], l.rank)
}

// withdraw tells the coordinator that the lane's known head waits no longer.
func (s *Schedule) withdraw(l *lane) {
	s.news.Withdrawn = append(s.news.Withdrawn, l.known.claim)
	s.unknown(l)
}

// unknown notes that the coordinator keeps nothing for the lane any more:
// others, who were refused for its sake, may ask again.
func (s *Schedule) unknown(l *lane) {
	l.notPassed()
	s.saveNoMore(l)
	for _, k := range l.keys {
		if k.noPermit.on {
			k.noPermit = refusal{}
			s.offerAll(k)
		}
	}
	l.known = nil
}

// notPassed notes that no key's permits are known to block the lane.
func (l *lane) notPassed() {
	if l.passed != nil {
		l.passed.passed, l.passed = nil, nil
	}
}

// laneID tells lanes apart: two jobs with the same have the same keys.
type laneID struct{ host, account, pools string }

// laneOf returns the job's lane, made if there is none.
func (s *Schedule) laneOf(j *Job, now limits.Time) *lane {
	id := laneID{j.Host, j.Account, strings.Join(j.Pools, "\x00")}
	if l := s.lanes[id]; l != nil {
		return l
	}
	// A lane that never started goes before one that started this moment.
	l := &lane{id: id, since: now - 1, settled: now}
	l.jobs = heap[*Job]{before: jobBefore, place: func(j *Job) *int32 { return &j.inLane }}
	add := func(kind limits.Kind, name string) {
		k := limits.Key{Kind: kind, Name: name}
		if s.keys[k] == nil {
			s.keys[k] = newKey(k, s.limitOf(k))
			s.keys[k].extend(s.pauses[k])
		}
		l.keys = append(l.keys, s.keys[k])
		l.names = append(l.names, k)
	}
	if j.Host != "" {
		add(limits.Host, j.Host)
	}
	if j.Account != "" {
		add(limits.Account, j.Account)
	}
	for _, pool := range j.Pools {
		add(limits.Pool, pool)
	}
	if j.Host != "" && j.Account != "" {
		l.pair = limits.PairKey(j.Host, j.Account)
		l.pairPause = s.pauses[l.pair]
		s.pairs[l.pair] = append(s.pairs[l.pair], l)
	}
	if len(l.keys) == 0 {
		l.keys = append(l.keys, s.none)
	}
	l.at = make([]int32, len(l.keys))
	for i, k := range l.keys {
		l.at[i] = -1
		k.lanesIn++
	}
	s.lanes[id] = l
	return l
}

// unlinkPair takes a lane that goes off the list of its pair.
func (s *Schedule) unlinkPair(l *lane) {
	rest := slices.DeleteFunc(s.pairs[l.pair], func(other *lane) bool { return other == l })
	if s.pairs[l.pair] = rest; len(rest) == 0 {
		delete(s.pairs, l.pair)
	}
}

// notLater takes a job off the list of those that are not yet due.
func (l *lane) notLater(j *Job) {
	last := len(l.later) - 1
	moved := l.later[last]
	l.later[j.inLater], moved.inLater = moved, j.inLater
	l.later[last] = nil
	l.later = l.later[:last]
}
