package runner

import (
	"context"
	"errors"
	"time"

	"agentlimit/runner/results"
)

// This file is about records on their way to the sink. The loop never waits for it,
// as it has signals and deadlines to keep, and counts a job as ended once its record
// is written.

const (
	// maxUnwritten is how many records may wait to be written before nothing more is
	// started.
	maxUnwritten = 256
	// stall is how long a killed run waits for whoever reads its records.
	stall = time.Second
)

// write appends what the loop hands on. After an error nothing more is written.
func (r *run) write() {
	var failed error
	for batch := range r.writes {
		if failed == nil {
			failed = r.append(batch)
		} else {
			r.lose(len(batch))
		}
		r.written <- failed
	}
}

// append writes records, and counts those that were.
func (r *run) append(batch []*results.Record) error {
	err, n := r.cfg.Records.Append(batch...), len(batch)
	if err != nil {
		n = 0
		if part, some := errors.AsType[*results.Partial](err); some {
			n = part.Records
		}
	}
	r.cfg.Stats.update(func(s *Summary) {
		for _, record := range batch[:n] {
			s.Ended[record.Status]++
		}
	})
	r.lose(len(batch) - n)
	return err
}

// lose counts jobs that ended without a record.
func (r *run) lose(n int) {
	r.cfg.Stats.update(func(s *Summary) { s.Unrecorded += int64(n) })
}

// unrecorded returns how many records are on their way.
func (r *run) unrecorded() int { return len(r.unwritten) + len(r.writing) }

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
	t.read.Done()
	r.record(record)
}

// record has a record written, which ends its job.
func (r *run) record(record *results.Record) {
	r.unwritten = append(r.unwritten, record)
	r.ended++
	switch record.Status {
	case results.Failed, results.Unknown, results.Invalid:
		r.failures++
		r.cfg.Stats.update(func(s *Summary) { s.Failures = r.failures })
	}
	if !r.stopped && r.cfg.MaxFailures.reached(r.failures, r.ended) {
		r.cfg.Stats.update(func(s *Summary) { s.TooMany = true })
		r.stop()
	}
}

// handOn gives the writer what waits for it, if it is idle.
func (r *run) handOn() {
	if len(r.unwritten) > 0 && len(r.writing) == 0 {
		r.writes <- r.unwritten
		r.writing, r.unwritten = r.unwritten, r.writing
	}
}

// wrote takes the writer's answer.
func (r *run) wrote(err error) {
	clear(r.writing)
	if r.writing = r.writing[:0]; err != nil {
		r.fail(err)
	}
}

// writeRest waits until every record is written. A killed run does not wait for a
// reader that has stalled.
func (r *run) writeRest() {
	stalled := make(chan struct{})
	defer context.AfterFunc(r.cfg.Kill, func() { time.Sleep(stall); close(stalled) })()
	for r.handOn(); r.unrecorded() > 0; r.handOn() {
		select {
		case err := <-r.written:
			r.wrote(err)
		case <-stalled:
			r.lose(r.unrecorded())
			r.fail(errors.New("write results: whoever reads them has stalled"))
			return
		}
	}
}
