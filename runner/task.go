package runner

import (
	"context"
	"fmt"
	"os"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

// task is one job on its way from the source to its record.
type task struct {
	schedule.Job
	read     *jobspec.Job // as the source handed it out
	job      *jobspec.Job // whose call to make now: redirects turn it
	queued   limits.Time
	start    schedule.Start // of the attempt under way, or the last
	until    limits.Time    // when its grant is of no use any more if it has not begun; 0: never
	attempts []results.Attempt
	last     call.Outcome
	hinted   int // attempts that were refused with a hint
	hops     int // attempts that were redirected
}

// newTask makes a task of a job that has just been read.
func (r *run) newTask(job *jobspec.Job) *task {
	now := r.cfg.Coordinator.Now()
	t := &task{read: job, job: job, queued: now}
	t.Job = schedule.Job{
		Seq: job.Seq, Host: job.Host, Account: job.Account, Pools: job.Pools, Costs: costs(job),
		Priority: int64(job.Priority), Deadline: r.deadline(job), MaxWait: job.Retry.MaxWait, Ref: t,
	}
	return t
}

// deadline returns the earlier of the job's and the run's deadline.
func (r *run) deadline(job *jobspec.Job) limits.Time {
	deadline := limits.Never
	if at := job.Deadline.Moment(r.began); at > 0 {
		deadline = at
	}
	if r.cfg.Deadline > 0 {
		deadline = min(deadline, r.began.Add(r.cfg.Deadline))
	}
	return deadline
}

// costs returns the job's tokens by key in admission order; nil for one each.
func costs(job *jobspec.Job) []int64 {
	plain := job.Cost == 1
	for _, c := range job.PoolCost {
		plain = plain && c == 1
	}
	if plain {
		return nil
	}
	var all []int64
	if job.Host != "" {
		all = append(all, job.Cost)
	}
	if job.Account != "" {
		all = append(all, job.Cost)
	}
	return append(all, job.PoolCost...)
}

// end is one attempt that has ended.
type end struct {
	task    *task
	outcome call.Outcome
	late    bool // it was not made: the deadline, or the grant's time, had passed
	started limits.Time
	ended   limits.Time
}

// work makes the attempts of one worker.
func (r *run) work() {
	for t := range r.starts {
		e := end{task: t, started: r.cfg.Coordinator.Now()}
		if e.late = e.started > t.Deadline || t.until > 0 && e.started >= t.until; !e.late {
			e.outcome = r.attempt(t)
		}
		e.ended = r.cfg.Coordinator.Now()
		r.ends <- e
	}
}

// attempt makes one attempt. A panic is its outcome, so that its permits come
// back whatever happens.
func (r *run) attempt(t *task) (out call.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = call.Outcome{Kind: call.Broken, Error: &results.Error{Kind: "panic", Message: fmt.Sprint(p)}}
		}
	}()
	a := call.Attempt{Job: t.job, From: t.read, Number: len(t.attempts) + 1}
	if t.Deadline != limits.Never {
		a.Deadline = t.Deadline.Wall()
	}
	if t.job.Exec != nil { // what its environment says
		for _, key := range t.start.Keys {
			a.Keys = append(a.Keys, call.KeyWord(key))
		}
		if in, ok := r.cfg.Coordinator.(limits.Inheritor); ok {
			a.Permit = func(ctx context.Context) (*os.File, error) { return in.Inherit(ctx, t.start.Claim) }
		}
	}
	if r.cfg.Sending != nil && !idempotent(t.job) {
		a.Sending = func() error { return r.cfg.Sending(t.job) }
	}
	return r.cfg.Caller.Call(r.calls, a)
}

// note adds an attempt that has ended to the job's record.
func (t *task) note(e end) {
	t.last = e.outcome
	a := results.Attempt{
		Host:       t.Host,
		AdmittedAt: results.At(t.start.Admitted),
		StartedAt:  results.At(e.started),
		EndedAt:    results.At(e.ended),
		Waited:     waits(t.start.Waited),
		Outcome:    string(e.outcome.Kind),
	}
	if len(t.attempts) > 0 { // thousands of jobs may wait to be tried again
		a.Charge = t.attempts[0].Charge
	} else {
		a.Charge = t.charge()
	}
	if e.outcome.HTTP != nil {
		a.Status = e.outcome.HTTP.Status
		if to := e.outcome.HTTP.Headers["Location"]; len(to) > 0 {
			a.Location = to[0]
		}
	}
	if e.outcome.Exec != nil {
		a.ExitCode = &e.outcome.Exec.ExitCode
	}
	if e.outcome.Error != nil {
		a.Error = e.outcome.Error.Message
	}
	t.attempts = append(t.attempts, a)
}

// charge returns what the job's attempts take, which is the same for each.
func (t *task) charge() map[limits.Key]int64 {
	charge := make(map[limits.Key]int64, len(t.start.Keys))
	for i, key := range t.start.Keys {
		charge[key] = t.start.Cost(i)
	}
	return charge
}

// waits spells waits in the milliseconds of a record.
func waits(w schedule.Waits) (ms results.Waits) {
	ms.Total = float64(w.Total()) / 1e3
	for cause, part := range ms.Parts() {
		*part = float64(w[cause]) / 1e3
	}
	return ms
}

// finish returns the record of a job whose last attempt has ended.
func (t *task) finish(r *run, status results.Status, e end) *results.Record {
	rec := t.record(r, status, e.ended)
	rec.HTTP, rec.Exec, rec.Error = e.outcome.HTTP, e.outcome.Exec, e.outcome.Error
	return rec
}

// interrupt returns the record of a job that was to be tried again when the run
// was stopped.
func (t *task) interrupt(r *run) *results.Record {
	rec := t.finish(r, results.Interrupted, end{outcome: t.last, ended: r.cfg.Coordinator.Now()})
	rec.Error = &results.Error{Kind: "stopped", Message: "the run was stopped before the next attempt"}
	return rec
}

// giveUp returns the record of a job that the schedule gave up. One that was
// tried and has no time for another attempt has failed as its last one did.
func (t *task) giveUp(r *run, d schedule.Deferral) *results.Record {
	now := r.cfg.Coordinator.Now()
	if r.lost != nil && (d.Why == schedule.NoPermit || d.Why == schedule.NoTokens) {
		d = schedule.Deferral{Why: schedule.NoAnswer} // what it was before, nobody knows to be still so
	}
	if len(t.attempts) > 0 && t.last.Hint != nil {
		return t.throttled(r, d, now)
	}
	if len(t.attempts) > 0 {
		rec := t.finish(r, results.Failed, end{outcome: t.last, ended: now})
		late := "no time for another attempt: " + reason(d)
		if last := rec.Error; last != nil {
			rec.Error = &results.Error{Kind: last.Kind, Message: last.Message + "; " + late}
		} else { // a redirect
			rec.Error = &results.Error{Kind: "late", Message: late}
		}
		return rec
	}
	rec := t.record(r, results.Deferred, now)
	rec.Deferred = &results.Deferral{Reason: reason(d), Deadline: results.At(t.Deadline), RetryAt: results.At(d.Until)}
	if d.Why == schedule.NoPermit || d.Key != (limits.Key{}) {
		rec.Deferred.Key = &d.Key
	}
	return rec
}

// reason says in words why a job was given up.
func reason(d schedule.Deferral) string {
	name := d.Key.Kind.String() + " " + d.Key.Name
	if d.Key.Kind == limits.Global {
		name = "global cap"
	}
	switch d.Why {
	case schedule.Past:
		return "the deadline had already passed"
	case schedule.NoAnswer:
		return "the coordinator did not answer before the deadline"
	case schedule.NotYet:
		return "it may start only after the deadline"
	case schedule.NoPermit:
		return name + ": no permit before the deadline"
	case schedule.NoTokens:
		return name + ": no token before the deadline"
	case schedule.InPause:
		return name + ": paused past the deadline"
	}
	return name + ": paused for longer than max_wait"
}

// record returns the record of a job that ended at a time.
func (t *task) record(r *run, status results.Status, ended limits.Time) *results.Record {
	return &results.Record{
		Run: r.cfg.Run, ID: t.job.ID, Status: status, Kind: t.job.Kind(),
		Host: t.job.Host, Account: t.job.Account, Pools: t.job.Pools, Labels: t.job.Labels,
		Deadline: results.At(t.Deadline), Hash: t.job.Hash,
		QueuedAt: results.At(t.queued), EndedAt: results.At(ended), Attempts: t.attempts,
	}
}

// invalid returns the record of one bad line of a pipe.
func (r *run) invalid(bad *jobspec.Invalid) *results.Record {
	return &results.Record{
		Run: r.cfg.Run, ID: bad.Pos.String(), Status: results.Invalid,
		EndedAt: results.At(r.cfg.Coordinator.Now()),
		Error:   &results.Error{Kind: "invalid", Message: bad.Err.Error()},
	}
}
