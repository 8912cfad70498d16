// Package runner runs the jobs of a source under limits: source -> schedule ->
// coordinator -> workers -> records.
//
// One goroutine, the loop, owns the schedule and everything that decides. Around
// it are goroutines that wait, each for one thing, and meet it on channels: one
// reads the source, one speaks to the coordinator, one writes records, and
// workers make attempts. At most one call to the coordinator is under way; what
// happens meanwhile forms the next batch.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"agentlimit/jobspec"
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
	defer context.AfterFunc(cfg.Kill, cfg.Caller.Close)()
	for _, p := range cfg.Pauses {
		r.schedule.Pause(p.Key, p.Until, r.began)
		r.paused(p.Key, p.Until, "asked for in an earlier run")
	}

	var around errgroup.Group
	go r.read() // not waited for: a silent pipe may keep it for ever
	around.Go(r.speak)
	around.Go(r.write)
	r.loop(ctx)
	close(r.quit)
	close(r.batches)
	close(r.starts)
	close(r.records)
	_ = r.workers.Wait() // workers return no error: theirs are in the records
	if err := around.Wait(); r.err == nil {
		r.err = err
	}
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
	workers     errgroup.Group
	hired       int // workers

	quit    chan struct{}        // closed when the loop is done
	jobs    chan incoming        // read -> loop
	batches chan *limits.Batch   // loop -> speak
	replies chan error           // speak -> loop; r.reply holds the reply
	starts  chan *task           // loop -> workers
	ends    chan end             // workers -> loop
	records chan *results.Record // loop -> write
	broken  chan error           // write -> loop, once

	reply    limits.Reply // the loop's, but speak's while asking
	asking   bool         // a batch is under way
	lost     bool         // the coordinator does not answer: nothing more is asked
	allRead  bool
	stopped  bool // nothing starts any more
	underWay int
	watchAt  limits.Time                // when to look for the longest wait again
	pauses   map[limits.Key]limits.Time // that were told of
	ended    int64                      // jobs
	err      error                      // why the run cannot go on
}

// incoming is a job from the source, or its error.
type incoming struct {
	job *jobspec.Job
	err error
}

func newRun(cfg Config) *run {
	return &run{
		cfg:      cfg,
		schedule: schedule.New(cfg.Limits.For),
		began:    cfg.Coordinator.Now(),
		quit:     make(chan struct{}),
		jobs:     make(chan incoming),
		batches:  make(chan *limits.Batch, 1),
		replies:  make(chan error, 1),
		starts:   make(chan *task, cfg.Global),
		ends:     make(chan end, cfg.Global),
		records:  make(chan *results.Record, 256),
		broken:   make(chan error, 1),
		pauses:   make(map[limits.Key]limits.Time),
	}
}

// read hands the source's jobs to the loop.
func (r *run) read() {
	for {
		job, err := r.cfg.Source.Next()
		select {
		case r.jobs <- incoming{job, err}:
		case <-r.quit:
			return
		}
		var invalid *jobspec.Invalid
		if err != nil && !errors.As(err, &invalid) {
			return // the loop has it
		}
	}
}

// speak carries batches to the coordinator.
func (r *run) speak() error {
	for batch := range r.batches {
		r.replies <- r.cfg.Coordinator.Sync(r.calls, batch, &r.reply)
	}
	return nil
}

// write appends records, as many at once as have come meanwhile. After an error
// it takes the rest and drops them, so that nobody waits for it.
func (r *run) write() error {
	var failed error
	var batch []*results.Record
	for record := range r.records {
		batch = append(batch[:0], record)
		for more := true; more && len(batch) < cap(r.records); {
			select {
			case next, open := <-r.records:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		if failed != nil {
			continue
		}
		if failed = r.cfg.Records.Append(batch...); failed != nil {
			r.broken <- failed
		}
	}
	return failed
}

// loop is the run: it takes what happens and does what follows from it, until
// nothing waits, nothing is under way and nothing more will come.
func (r *run) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lastCalls <-chan time.Time
	stop, kill := ctx.Done(), r.cfg.Kill.Done()
	for {
		r.settle()
		if r.done() {
			break
		}
		r.arm(timer)
		select {
		case in := <-r.wanted():
			r.arrive(in)
		case e := <-r.ends:
			r.end(e)
		case err := <-r.replies:
			r.answered(err)
		case <-r.cfg.Coordinator.Changed():
			r.schedule.Changed()
		case <-timer.C:
		case err := <-r.broken:
			r.fail(err)
		case <-stop:
			stop = nil
			r.stop()
			lastCalls = time.After(max(0, r.cfg.Grace-lastCall))
		case <-lastCalls:
			r.cancelCalls(errStopped)
		case <-kill:
			kill, stop = nil, nil
			r.stop()
		}
		r.takeWhatElseCame()
	}
	r.abandon()
}

// errStopped is why attempts are cancelled when the grace runs out.
var errStopped = errors.New("the run was stopped")

// takeWhatElseCame takes ends and jobs that have come already, so that one batch
// speaks for all of them.
func (r *run) takeWhatElseCame() {
	for range maxBurst {
		select {
		case e := <-r.ends:
			r.end(e)
		case in := <-r.wanted():
			r.arrive(in)
		default:
			return
		}
	}
}

// maxBurst bounds how much is taken in before anything is started.
const maxBurst = 256

// wanted returns the channel of jobs if there is room for one more.
func (r *run) wanted() <-chan incoming {
	if r.stopped || r.allRead || r.schedule.Waiting() >= r.cfg.Queue {
		return nil
	}
	return r.jobs
}

// arrive takes one job, or what came instead of one.
func (r *run) arrive(in incoming) {
	var invalid *jobspec.Invalid
	switch {
	case in.err == io.EOF:
		r.allRead = true
		r.cfg.Stats.update(func(s *Summary) { s.AllRead = true })
	case errors.As(in.err, &invalid):
		r.cfg.Stats.update(func(s *Summary) { s.Jobs++ })
		r.record(r.invalid(invalid))
	case in.err != nil:
		r.fail(fmt.Errorf("read jobs: %w", in.err))
	default:
		r.take(in.job)
	}
}

// take lets a job wait, unless an earlier run has done it.
func (r *run) take(job *jobspec.Job) {
	todo, changed, status := r.cfg.Past.left(job, r.cfg.RetryUnknown)
	if !todo {
		r.cfg.Stats.update(func(s *Summary) { s.Jobs++; s.Earlier++; s.Ended[status]++ })
		return
	}
	if changed && r.cfg.Changed != nil {
		r.cfg.Changed(job)
	}
	r.cfg.Stats.update(func(s *Summary) { s.Jobs++ })
	t := r.newTask(job)
	r.schedule.Add(&t.Job, t.queued, job.NotBefore.Moment(r.began), schedule.NotBefore)
}

// settle does all that follows from what has happened: jobs become due or are
// given up, and what can start is asked for.
func (r *run) settle() {
	r.schedule.Tick(r.cfg.Coordinator.Now())
	r.deferred()
	r.cfg.Stats.update(func(s *Summary) { s.Waiting = int64(r.schedule.Waiting()) })
	if r.asking || r.lost {
		return
	}
	free := r.cfg.Global - r.underWay
	if r.stopped {
		free = 0
	}
	if batch := r.schedule.Ask(r.cfg.Coordinator.Now(), free); batch != nil {
		r.asking = true
		r.batches <- batch
	}
}

// arm sets the timer to when the schedule has something to do next.
func (r *run) arm(timer *time.Timer) {
	now := r.cfg.Coordinator.Now()
	next := min(r.schedule.Next(), r.tellEnded(now), r.watchWaits(now))
	timer.Reset(max(0, next.Sub(r.cfg.Coordinator.Now())))
}

// answered takes the coordinator's reply.
func (r *run) answered(err error) {
	r.asking = false
	if err != nil {
		r.lost = true
		r.schedule.Unanswered()
		r.fail(fmt.Errorf("ask the coordinator: %w", err))
		return
	}
	r.schedule.Answer(&r.reply)
	for _, start := range r.schedule.Started() {
		if r.stopped { // the grant came after the stop: it is given back whole
			r.schedule.Refund(start.Job, r.reply.Now)
			r.schedule.Add(start.Job, r.reply.Now, 0, schedule.NotBefore)
			continue
		}
		r.start(start)
	}
	r.deferred()
}

// start hands an admitted job to a worker.
func (r *run) start(start schedule.Start) {
	t := start.Job.Ref.(*task)
	t.start = start
	r.underWay++
	r.cfg.Stats.started(start)
	if r.underWay > r.hired {
		r.hired++
		r.workers.Go(func() error { r.work(); return nil })
	}
	r.starts <- t
}

// end takes an attempt that has ended: its permits go back, and the job ends or
// waits for another attempt.
func (r *run) end(e end) {
	t := e.task
	if e.outcome.Hint != nil {
		// The recorded end moves to this moment, from which on nothing starts:
		// no admission can lie between it and the pause.
		e.ended = r.cfg.Coordinator.Now()
	}
	r.underWay--
	r.cfg.Stats.ended(t.start, !e.late)
	if e.late { // the deadline passed with the grant in hand
		r.schedule.Refund(&t.Job, e.ended)
		r.again(t, e.ended, 0, schedule.Backoff)
		return
	}
	r.schedule.Release(&t.Job, e.ended)
	t.note(e)
	due, cause := limits.Time(0), schedule.Backoff
	if e.outcome.Hint != nil {
		t.hinted++
		if due = r.slowDown(t, e); pauseKey(t, e.outcome) != (limits.Key{}) {
			due = 0 // it waits with all others that the pause holds
		} else {
			cause = schedule.Pause
		}
	}
	next, v := t.redirect(e.outcome), t.judge(e.outcome)
	switch {
	case r.stopped && (next != nil || v.again):
		r.record(t.interrupt(r))
	case next != nil:
		t.job, t.hops = next, t.hops+1
		r.again(t, e.ended, 0, cause)
	case !v.again:
		r.record(t.finish(r, v.status, e))
	case t.hinted > maxHinted:
		r.gaveUp(t, t.throttled(r, schedule.Deferral{}, e.ended))
	default:
		r.again(t, e.ended, max(due, e.ended.Add(v.backoff)), cause)
	}
}

// again lets a job wait for another attempt.
func (r *run) again(t *task, now, due limits.Time, cause schedule.Cause) {
	r.schedule.Add(&t.Job, now, due, cause)
}

// deferred records the jobs that the schedule gave up.
func (r *run) deferred() {
	for _, d := range r.schedule.Deferred() {
		t := d.Job.Ref.(*task)
		r.gaveUp(t, t.giveUp(r, d))
	}
}

// gaveUp records a job that was given up.
func (r *run) gaveUp(t *task, record *results.Record) {
	if record.Status == results.Deferred && r.cfg.Deferred != nil {
		r.cfg.Deferred(t.job, record.Deferred.RetryAt.Time)
	}
	r.record(record)
}

// record hands a record to the writer.
func (r *run) record(record *results.Record) {
	var failures int64
	r.cfg.Stats.update(func(s *Summary) {
		s.Ended[record.Status]++
		switch record.Status {
		case results.Failed, results.Unknown, results.Invalid:
			s.Failures++
		}
		failures = s.Failures
	})
	r.records <- record
	r.ended++
	if !r.stopped && r.cfg.MaxFailures.reached(failures, r.ended) {
		r.cfg.Stats.update(func(s *Summary) { s.TooMany = true })
		r.stop()
	}
}

// fail stops the run, which cannot go on; what is under way may end.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.stop()
}

func (r *run) stop() {
	r.stopped = true
}

// done reports whether nothing is left to do.
func (r *run) done() bool {
	if r.asking || r.underWay > 0 {
		return false
	}
	return r.stopped || r.allRead && r.schedule.Waiting() == 0
}

// abandon ends what a stopped run leaves: a job that was tried gets a record, one
// that never started gets none.
func (r *run) abandon() {
	r.cfg.Stats.update(func(s *Summary) { s.Longest = Wait{} })
	r.cfg.Stats.update(func(s *Summary) { s.Waiting = 0 })
	r.schedule.Each(func(j *schedule.Job) {
		t := j.Ref.(*task)
		if len(t.attempts) == 0 {
			r.cfg.Stats.update(func(s *Summary) { s.Unstarted++ })
			return
		}
		r.record(t.interrupt(r))
	})
}
