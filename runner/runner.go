// Package runner runs the jobs of a source under limits: source -> schedule ->
// coordinator -> workers -> records.
//
// One goroutine, the loop, owns the schedule and everything that decides. Around
// it are goroutines that wait, each for one thing, and meet it on channels: one
// reads the source, one speaks to the coordinator, one writes records, and
// workers make attempts. At most one call to the coordinator is under way, and one
// write; what happens meanwhile forms the next batch.
package runner

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"agentlimit/limits"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

// lastCall is how much of the grace is left when attempts under way are told to
// end: a command has that long between TERM and KILL.
const lastCall = 3 * time.Second

// Run runs every job of cfg.Source and returns when nothing is under way and
// every record is written. When ctx is done no more attempts start; those under
// way have cfg.Grace to end. When cfg.Kill is done they are ended at once. The
// error is not nil only if the run could not go on: the source cannot be read,
// or records cannot be written.
func Run(ctx context.Context, cfg Config) error {
	r := newRun(cfg)
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	r.calls, r.cancelCalls = calls, cancel
	asks, cancelAsks := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelAsks()
	r.asks, r.cancelAsks = asks, cancelAsks
	defer context.AfterFunc(cfg.Kill, cancelAsks)()
	defer context.AfterFunc(cfg.Kill, cfg.Caller.Close)()
	for _, p := range cfg.Pauses {
		r.schedule.Pause(p.Key, p.Until, r.began)
		r.paused(p.Key, p.Until, r.began, "asked for in an earlier run")
	}

	go r.read() // not waited for: a silent pipe may keep it for ever
	go r.speak()
	go r.write() // nor is this: a reader may have stalled
	r.loop(ctx)
	close(r.quit)
	close(r.batches)
	close(r.starts)
	_ = r.workers.Wait() // workers return no error: theirs are in the records
	r.writeRest()
	close(r.writes)
	return r.err
}

// run is one run under way. Only the loop uses what has no comment to say
// otherwise.
type run struct {
	cfg      Config
	schedule *schedule.Schedule
	began    limits.Time

	calls       context.Context         // of the attempts under way
	cancelCalls context.CancelCauseFunc // may be used by any goroutine
	asks        context.Context         // of the batches under way
	cancelAsks  context.CancelFunc
	workers     errgroup.Group
	hired       int // workers

	quit    chan struct{}          // closed when the loop is done
	more    chan int               // loop -> read: so many more jobs
	jobs    chan incoming          // read -> loop
	batches chan *limits.Batch     // loop -> speak
	replies chan error             // speak -> loop; r.reply holds the reply
	starts  chan *task             // loop -> workers
	ends    chan end               // workers -> loop
	writes  chan []*results.Record // loop -> write
	written chan error             // write -> loop, one for each

	unwritten []*results.Record // that the writer has not been given yet
	writing   []*results.Record // that it is at

	reply    limits.Reply // the loop's, but speak's while asking
	asking   bool         // a batch is under way
	lost     *limits.Lost // the coordinator cannot be reached; nil: it can
	beating  bool         // that batch says nothing
	beatAt   limits.Time  // when to ask even so
	askAt    limits.Time  // when to try again; of a coordinator that failed, never
	reading  int          // jobs that were asked of read
	allRead  bool
	stopped  bool // nothing starts any more
	underWay int
	watchAt  limits.Time                // when to look for the longest wait again
	pauses   map[limits.Key]limits.Time // that were told of
	nextEnd  limits.Time                // when to look for pauses that have ended
	ended    int64                      // jobs
	failures int64                      // of them, what counts for MaxFailures
	err      error                      // why the run cannot go on
}

func newRun(cfg Config) *run {
	return &run{
		cfg:      cfg,
		schedule: schedule.New(cfg.Limits),
		began:    cfg.Coordinator.Now(),
		quit:     make(chan struct{}),
		more:     make(chan int, 1),
		jobs:     make(chan incoming, maxRead),
		batches:  make(chan *limits.Batch, 1),
		replies:  make(chan error, 1),
		starts:   make(chan *task, cfg.Global),
		ends:     make(chan end, cfg.Global),
		writes:   make(chan []*results.Record, 1),
		written:  make(chan error, 1),
		pauses:   make(map[limits.Key]limits.Time),
	}
}

// speak carries batches to the coordinator.
func (r *run) speak() {
	for batch := range r.batches {
		r.replies <- r.cfg.Coordinator.Sync(r.asks, batch, &r.reply)
	}
}
