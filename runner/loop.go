package runner

import (
	"context"
	"errors"
	"runtime"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// loop is the run: it takes what happens and does what follows from it, until
// nothing waits, nothing is under way and nothing more will come.
func (r *run) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lastCalls, lastAsk <-chan time.Time
	stop, kill := ctx.Done(), r.cfg.Kill.Done()
	r.readAhead(stop)
	for {
		r.settle()
		r.handOn()
		if r.done() {
			break
		}
		r.arm(timer)
		r.want()
		select {
		case in := <-r.jobs:
			r.arrive(in)
		case e := <-r.ends:
			r.end(e)
		case err := <-r.replies:
			r.answered(err)
		case <-r.cfg.Coordinator.Changed():
			r.schedule.Changed()
		case <-timer.C:
		case err := <-r.written:
			r.wrote(err)
		case <-stop:
			stop = nil
			r.stop()
			lastCalls = time.After(max(0, r.cfg.Grace-lastCall))
		case <-lastCalls:
			r.cancelCalls(errStopped)
			lastAsk = time.After(lastCall)
		case <-lastAsk: // a coordinator that does not answer may not hold up the end
			r.cancelAsks()
		case <-kill:
			kill, stop = nil, nil
			r.stop()
		}
		r.takeWhatElseCame()
	}
	r.abandon()
	r.nextEnd = 0
	r.tellEnded(r.cfg.Coordinator.Now())
}

// errStopped is why attempts are cancelled when the grace runs out.
var errStopped = errors.New("the run was stopped")

// takeWhatElseCame takes ends and jobs that have come already, so that one batch
// speaks for all of them. Workers that have one to tell but no processor yet go first:
// where processors are scarce, fewer and larger batches cost a sixth less of them, and
// where they are not, nothing is waited for.
func (r *run) takeWhatElseCame() {
	runtime.Gosched()
	for range maxBurst {
		r.want()
		select {
		case e := <-r.ends:
			r.end(e)
		case in := <-r.jobs:
			r.arrive(in)
		default:
			return
		}
	}
}

// maxBurst bounds how much is taken in before anything is started.
const maxBurst = 256

// settle does all that follows from what has happened: jobs become due or are
// given up, and what can start is asked for. A coordinator of this process answers at
// once, so it needs no goroutine that waits for it.
func (r *run) settle() {
	for batch := r.ask(); batch != nil; batch = r.ask() {
		local, ok := r.cfg.Coordinator.(*limits.Local)
		if !ok {
			r.asking = true
			r.batches <- batch
			return
		}
		r.answered(local.Sync(r.asks, batch, &r.reply))
	}
}

// ask returns what the coordinator is to be asked now; nil: nothing.
func (r *run) ask() *limits.Batch {
	r.schedule.Tick(r.cfg.Coordinator.Now())
	r.keepLease(r.cfg.Coordinator.Now())
	r.deferred()
	r.cfg.Stats.update(func(s *Summary) { s.Waiting = int64(r.schedule.Waiting()) })
	if r.asking || r.cfg.Coordinator.Now() < r.askAt {
		return nil
	}
	free := max(0, min(r.cfg.Global-r.underWay, maxUnwritten-r.unrecorded()))
	if r.stopped || r.lost != nil {
		free = 0
	}
	batch := r.schedule.Ask(r.cfg.Coordinator.Now(), free)
	if r.beating = batch == nil && (r.lost != nil || r.beatDue()); r.beating {
		batch = &limits.Batch{}
	}
	return batch
}

// arm sets the timer to when the schedule has something to do next.
func (r *run) arm(timer *time.Timer) {
	now := r.cfg.Coordinator.Now()
	next := min(r.schedule.Next(), r.tellEnded(now), r.watchWaits(now), r.nextTry())
	timer.Reset(max(0, next.Sub(r.cfg.Coordinator.Now())))
}

// answered takes the coordinator's reply.
func (r *run) answered(err error) {
	r.asking = false
	if err != nil {
		if !r.beating {
			r.schedule.Unanswered()
		}
		r.unanswered(err)
		return
	}
	if r.found(); r.beating {
		return
	}
	r.schedule.Answer(&r.reply)
	r.pausedElsewhere(r.reply.Levels)
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
	t.start, t.until = start, r.reply.Until
	t.read.Done()
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
	r.cfg.Stats.ended(t.start, e.ended, !e.late)
	if e.late { // it passed with the grant in hand
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
	r.cfg.Stats.update(func(s *Summary) { s.Longest, s.Waiting = schedule.Wait{}, 0 })
	r.schedule.Each(func(j *schedule.Job) {
		t := j.Ref.(*task)
		if len(t.attempts) == 0 {
			r.cfg.Stats.update(func(s *Summary) { s.Unstarted++ })
			return
		}
		r.record(t.interrupt(r))
	})
}
