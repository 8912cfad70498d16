package runner

import (
	"errors"
	"fmt"
	"io"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/schedule"
)

// This file is about jobs on their way from the source into the schedule.

// incoming is a job from the source, or its error.
type incoming struct {
	job *jobspec.Job
	err error
}

// read hands the source's jobs to the loop, as many as it asks for.
func (r *run) read() {
	for {
		n := 0
		select {
		case n = <-r.more:
		case <-r.quit:
			return
		}
		for ; n > 0; n-- {
			job, err := r.cfg.Source.Next()
			r.jobs <- incoming{job, err} // there is room for it
			if _, bad := errors.AsType[*jobspec.Invalid](err); err != nil && !bad {
				return // it is final
			}
		}
	}
}

// soon is how long the next job may take to be read and still be one of those that
// are ranked before the first start; soonAll is how long all of them may take.
const (
	soon    = 20 * time.Millisecond
	soonAll = 100 * time.Millisecond
)

// readAhead takes the jobs that are there already, as a file's are, so that the
// first to start is the best-ranked of them, and not the first that was read.
func (r *run) readAhead(stop <-chan struct{}) {
	late, enough := time.NewTimer(soon), time.NewTimer(soonAll)
	defer late.Stop()
	defer enough.Stop()
	for r.want() {
		select {
		case in := <-r.jobs:
			r.arrive(in)
			late.Reset(soon)
		case <-late.C:
			return
		case <-enough.C:
			return
		case <-stop:
			return
		}
	}
}

// maxHidden is how many jobs may wait in memory beyond the queue so that no keys are
// hidden: 10,000 as the queue.
const maxHidden = 10_000

// maxRead is how many jobs are asked of the source at once, if there is room: the way
// to its goroutine and back would cost more than most of them.
const maxRead = 64

// room returns how many more jobs may be read to wait in memory, at most maxRead. A
// queue that is nearly full waits until there is room for some, or for all that it
// holds if that is less; even a full one has room for a job whose keys no other has that
// waits, since that might start at once.
func (r *run) room() int {
	if r.stopped || r.allRead || r.unrecorded() > maxUnwritten {
		return 0
	}
	free := r.cfg.Queue - r.schedule.Waiting()
	switch {
	case free >= min(maxRead, 1+r.cfg.Queue/(2*maxRead)):
		return min(free, maxRead)
	case free > -maxHidden && r.cfg.Source.Hidden():
		return 1
	}
	return 0
}

// want has more jobs read if there is room for them. It reports whether some are being
// read.
func (r *run) want() bool {
	if r.reading == 0 {
		if r.reading = r.room(); r.reading > 0 {
			r.more <- r.reading
		}
	}
	return r.reading > 0
}

// arrive takes one job, or what came instead of one.
func (r *run) arrive(in incoming) {
	if r.reading--; r.stopped {
		return // as if it had not been read
	}
	var invalid *jobspec.Invalid
	switch {
	case in.err == io.EOF:
		r.allRead, r.reading = true, 0
		r.cfg.Stats.update(func(s *Summary) { s.AllRead = true })
	case errors.As(in.err, &invalid):
		r.cfg.Stats.update(func(s *Summary) { s.Jobs++ })
		r.record(r.invalid(invalid))
	case in.err != nil:
		r.reading = 0
		r.fail(fmt.Errorf("read jobs: %w", in.err))
	default:
		r.take(in.job)
	}
}

// take lets a job wait, unless an earlier run has done it.
func (r *run) take(job *jobspec.Job) {
	todo, changed, status := r.cfg.Past.left(job, r.cfg.RetryUnknown)
	if !todo {
		job.Done()
		if r.cfg.Left != nil {
			r.cfg.Left(job)
		}
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
