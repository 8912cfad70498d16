// Package schedule keeps the jobs that wait, and says which of them to claim
// permits for, in what order. It is a pure state machine: every method takes the
// time, nothing waits, and nothing is safe for use by several goroutines at once.
//
// Jobs that need the same keys wait in one lane, in order of priority, deadline
// and place in the file; only its head may start. A lane stands in the heap of
// each of its keys, ordered by its head's rank, and is never moved when a key
// comes free or is used up. Instead each key is either shut (no permit, a pause,
// no token: known from what this process holds and from the coordinator's last
// answer) or open, and the open keys that may have something to start are in one
// heap, ordered by the best rank they may offer. Taking the best key and, of its
// lanes, the best whose other keys are open too, finds the best-ranked job that
// can start, without waking or moving any other.
//
// Invariant: every lane that could start has at least one of its keys in the
// ready heap. What the schedule knows of keys is only a guess that saves vain
// questions: a job starts if, and only if, the coordinator grants its claim.
package schedule

import (
	"time"

	"agentlimit/limits"
)

// maxClaims is how many claims one batch may hold.
const maxClaims = 256

// Job is one job as the schedule sees it. The exported fields are the caller's,
// and must not change while the job is in the schedule.
type Job struct {
	Seq      int64    // place in the run
	Host     string   // empty if none
	Account  string   // empty if none
	Pools    []string // sorted, each once
	Costs    []int64  // tokens by key in admission order; nil: one each
	Priority int64
	Deadline limits.Time   // last moment to start; [limits.Never] if none
	MaxWait  time.Duration // longest pause to wait for; 0: none
	Ref      any           // the caller's

	lane    *lane
	phase   phase
	claim   limits.ClaimID // that stands for the job's next attempt; 0: none yet
	due     limits.Time    // before which the job is in no lane
	dueFor  Cause          // of the wait until then
	added   limits.Time    // when it came, or came back, to the schedule
	before  Waits          // what its lane had waited when the job entered it
	own     Waits          // what the job waited outside its lane
	watches []watch        // one for each bucket that may make it late

	// Places in the heaps, and in the lane's list of those that are not yet due.
	inLane, inDue, inDeadlines, inLater int32
}

type phase uint8

const (
	away    phase = iota // not in the schedule: new, running or ended
	notDue               // waits for a time of its own
	queued               // waits in its lane
	claimed              // in the batch under way, taken out of its lane
)

// cost returns the tokens that the job takes from the i-th of its keys.
func (j *Job) cost(i int) int64 {
	if j.Costs == nil {
		return 1
	}
	return j.Costs[i]
}

// Start is a job that was admitted.
type Start struct {
	Job      *Job
	Claim    limits.ClaimID
	Admitted limits.Time
	Waited   Waits        // since the job was added
	Keys     []limits.Key // of its permits, in admission order; not to be changed
}

// Cost returns the tokens paid to the i-th key.
func (s Start) Cost(i int) int64 { return s.Job.cost(i) }

// Schedule holds the jobs that wait. See [New].
type Schedule struct {
	limitOf func(limits.Key) limits.Limit

	lanes  map[laneID]*lane
	keys   map[limits.Key]*key
	pairs  map[limits.Key][]*lane     // of each host and account
	none   *key                       // that lanes without any key stand in
	pauses map[limits.Key]limits.Time // of every key that is paused, and some that were

	pausesKept int        // when the ended ones were last forgotten
	ready      heap[*key] // open keys, best hope first
	timers     heap[*key] // keys to be looked at again at a time
	due        heap[*Job]
	deadlines  heap[*Job]
	waiting    int
	full       bool // nothing more could start at the last Ask: the global cap is reached

	lastClaim limits.ClaimID
	batchNo   uint64
	news      limits.Batch  // what to say with the next batch, but for claims
	batch     limits.Batch  // under way, the coordinator's until it is answered
	needs     []limits.Need // of the batch's claims
	asked     []asked       // what the batch's claims stand for

	started  []Start
	deferred []Deferral
}

// New returns an empty schedule. limitOf says what each key allows.
func New(limitOf func(limits.Key) limits.Limit) *Schedule {
	s := &Schedule{
		limitOf: limitOf,
		lanes:   make(map[laneID]*lane),
		keys:    make(map[limits.Key]*key),
		pairs:   make(map[limits.Key][]*lane),
		pauses:  make(map[limits.Key]limits.Time),
		ready: heap[*key]{
			before: func(a, b *key) bool { return a.hope.Before(b.hope) },
			place:  func(k *key) *int32 { return &k.inReady },
		},
		timers: heap[*key]{
			before: func(a, b *key) bool { return a.wakeAt < b.wakeAt },
			place:  func(k *key) *int32 { return &k.inTimers },
		},
		due: heap[*Job]{
			before: func(a, b *Job) bool { return a.due < b.due },
			place:  func(j *Job) *int32 { return &j.inDue },
		},
		deadlines: heap[*Job]{
			before: func(a, b *Job) bool { return a.Deadline < b.Deadline },
			place:  func(j *Job) *int32 { return &j.inDeadlines },
		},
	}
	s.none = newKey(limits.Key{}, limits.Limit{})
	return s
}

// Waiting returns how many jobs wait, those in the batch under way included.
func (s *Schedule) Waiting() int { return s.waiting }

// Add lets a job wait, for its first attempt or for another. It is in no lane
// before due (zero: at once), and counts that time as backoff, or as waiting for
// its not_before. A job that is certain to be late is deferred here and now.
func (s *Schedule) Add(j *Job, now, due limits.Time, cause Cause) {
	j.lane = s.laneOf(j, now)
	j.lane.jobsIn++
	j.inLane, j.inDue, j.inDeadlines = -1, -1, -1
	j.claim, j.due, j.dueFor, j.added, j.own = 0, due, cause, now, Waits{}
	s.waiting++
	if why, late := s.late(j, now); late {
		s.deferJob(j, why)
		return
	}
	s.watch(j)
	if due <= now {
		s.enqueue(j, now)
		return
	}
	j.phase = notDue
	j.inLater = int32(len(j.lane.later))
	j.lane.later = append(j.lane.later, j)
	s.due.push(j)
}

// enqueue puts a job that is due into its lane.
func (s *Schedule) enqueue(j *Job, now limits.Time) {
	l := j.lane
	j.phase = queued
	l.settle(now)
	if l.jobs.len() == 0 {
		l.cause, l.block = Global, limits.Key{}
	}
	j.before = l.waited
	l.jobs.push(j)
	if l.jobs.top() == j {
		s.headChanged(l)
	}
}

// takeOut removes a job that waits from wherever it does.
func (s *Schedule) takeOut(j *Job) {
	l := j.lane
	s.unwatch(j)
	if j.phase == notDue {
		s.due.remove(j)
		l.notLater(j)
	}
	head, asked := j.inLane == 0, j.phase == claimed
	l.jobs.remove(j)
	j.phase = away
	s.waiting--
	if head {
		s.headChanged(l)
	}
	if !asked { // else it leaves when the answer has come
		s.leave(l)
	}
}

// Release ends an attempt that was started: its permits come back with the next
// batch.
func (s *Schedule) Release(j *Job, now limits.Time) {
	s.news.Releases = append(s.news.Releases, j.claim)
	s.giveBack(j, now)
}

// Refund ends a start that was not made use of: permits and tokens come back
// with the next batch.
func (s *Schedule) Refund(j *Job, now limits.Time) {
	s.news.Refunds = append(s.news.Refunds, j.claim)
	j.lane.payBack(j)
	s.giveBack(j, now)
}

func (s *Schedule) giveBack(j *Job, now limits.Time) {
	for _, k := range j.lane.keys {
		if k.full() {
			k.openedAt, k.openedFrom = now, causeOf(k.id.Kind)
		}
		k.held--
		k.noPermit = refusal{}
		s.offerAll(k)
	}
	s.leave(j.lane)
}

// leave lets a lane go with the last of its jobs, and a key with its last lane.
func (s *Schedule) leave(l *lane) {
	if l.jobsIn--; l.jobsIn > 0 {
		return
	}
	delete(s.lanes, l.id)
	s.unlinkPair(l)
	for _, k := range l.keys {
		if k.lanesIn--; k.lanesIn == 0 && k != s.none {
			s.dropUnused(k)
		}
	}
}

// dropUnused lets go of a key that no lane needs, once its bucket is full again:
// until then a job that comes back must not be told of tokens that are not there.
func (s *Schedule) dropUnused(k *key) {
	s.ready.remove(k)
	s.timers.remove(k)
	if full := k.bucket.Ready(k.limit, k.limit.Burst); k.limit.Rate.Per > 0 && full > k.bucket.Last {
		s.wake(k, full)
		return
	}
	delete(s.keys, k.id)
}

// Tick moves on to now: jobs that are due enter their lanes, those whose
// deadline has passed are deferred, keys whose time has come are open again.
func (s *Schedule) Tick(now limits.Time) {
	for s.due.len() > 0 && s.due.top().due <= now {
		j := s.due.top()
		s.due.remove(j)
		j.lane.notLater(j)
		j.own[j.dueFor] = now - j.added
		s.enqueue(j, now)
	}
	for s.deadlines.len() > 0 && s.deadlines.top().Deadline < now {
		j := s.deadlines.top()
		s.deferJob(j, s.missed(j, now)) // one that is asked for too: a grant would come late
	}
	for s.timers.len() > 0 && s.timers.top().wakeAt <= now {
		k := s.timers.top()
		s.timers.remove(k)
		if k.lanesIn == 0 && k != s.none {
			k.tokensAt(k.limit.Burst, now)
			s.dropUnused(k)
			continue
		}
		k.openedAt, k.openedFrom = now, Rate
		if k.pause > 0 && k.pause == k.wakeAt {
			k.openedFrom = Pause
		}
		s.offerAll(k)
	}
}

// Next returns when Tick has something to do, [limits.Never] if it never has.
func (s *Schedule) Next() limits.Time {
	next := limits.Never
	if s.due.len() > 0 {
		next = s.due.top().due
	}
	if s.deadlines.len() > 0 {
		next = min(next, s.deadlines.top().Deadline+1)
	}
	if s.timers.len() > 0 {
		next = min(next, s.timers.top().wakeAt)
	}
	return next
}

// Changed tells that other processes gave something back: whatever was refused
// for lack of permits may be asked for again.
func (s *Schedule) Changed() {
	for _, k := range s.keys {
		if k.noPermit.on || k.noTokens.on || k.told.Ahead > 0 {
			k.noPermit, k.noTokens, k.told.Ahead = refusal{}, refusal{}, 0
			s.offerAll(k)
		}
	}
}

// Each calls f with every job that waits.
func (s *Schedule) Each(f func(*Job)) {
	for _, j := range s.due.items {
		f(j)
	}
	for _, l := range s.lanes {
		for _, j := range l.jobs.items {
			f(j)
		}
	}
	for _, a := range s.asked {
		if a.job.phase == claimed {
			f(a.job)
		}
	}
}
