package runner

import (
	"fmt"
	"math/rand/v2"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

// maxHinted is how many attempts of one job may be refused with a hint; they do
// not count as attempts, so something else must bound them.
const maxHinted = 10

// slowDown pauses what the service asked to be left alone, and notes it in the
// attempt's record. It returns until when the job itself has to wait.
func (r *run) slowDown(t *task, e end) limits.Time {
	h := e.outcome.Hint
	// Whoever waits for the end of a pause would come at the very same moment.
	late := time.Duration(rand.Float64() * float64(min(h.Wait/10, time.Second)))
	until := e.ended.Add(h.Wait).Add(late)
	note := &results.Hint{Source: h.Source, Raw: h.Raw, Until: results.At(until)}
	t.attempts[len(t.attempts)-1].Hint = note
	if key := pauseKey(t, e.outcome); key != (limits.Key{}) {
		note.Key = &key
		r.schedule.Pause(key, until, e.ended)
		r.paused(key, until, e.ended, whyPaused(e.outcome))
	}
	return until
}

// pauseKey returns the key that a hint speaks of: 503 is about the host, all
// others are about what the account may do there. The zero Key: about nobody but
// the job.
func pauseKey(t *task, o call.Outcome) limits.Key {
	switch {
	case t.Host != "" && (t.Account == "" || o.HTTP != nil && o.HTTP.Status == 503):
		return limits.Key{Kind: limits.Host, Name: t.Host}
	case t.Host != "":
		return limits.PairKey(t.Host, t.Account)
	case t.Account != "":
		return limits.Key{Kind: limits.Account, Name: t.Account}
	}
	return limits.Key{}
}

// Pause is a key that admits nothing for a while because a service asked.
type Pause struct {
	Key   limits.Key
	Until time.Time
	Left  time.Duration // until then, when it was asked for or heard of
	Why   string        // such as "429, retry-after: 3"
	Over  bool          // it has ended
}

// paused notes a pause, to tell of it and of its end. One that another outlasts
// is not told of.
func (r *run) paused(key limits.Key, until, now limits.Time, why string) {
	if until > r.pauses[key] {
		r.pauses[key] = until
		r.nextEnd = min(r.nextEnd, until)
		r.tell(Pause{Key: key, Until: until.Wall(), Left: until.Sub(now), Why: why})
	}
}

// pausedElsewhere notes the pauses that others asked for. One of the run's own comes
// back as it was, but for what clocks differ by.
func (r *run) pausedElsewhere(levels []limits.Level) {
	for _, level := range levels {
		known := r.pauses[level.Key]
		if level.Pause > r.reply.Now && level.Pause > known.Add(100*time.Millisecond) {
			r.paused(level.Key, level.Pause, r.reply.Now, "another run was asked to")
		}
	}
}

func whyPaused(o call.Outcome) string {
	why := o.Hint.Source + ": " + o.Hint.Raw
	if o.HTTP != nil {
		why = fmt.Sprintf("%d, %s", o.HTTP.Status, why)
	}
	return why
}

// tellEnded tells of the pauses that have ended, and returns when the next one will.
// There may be thousands: they are looked through at most every 50 ms.
func (r *run) tellEnded(now limits.Time) limits.Time {
	if len(r.pauses) == 0 {
		return limits.Never
	}
	if now < r.nextEnd {
		return r.nextEnd
	}
	r.nextEnd = limits.Never
	for key, until := range r.pauses {
		if until <= now {
			delete(r.pauses, key)
			r.tell(Pause{Key: key, Until: until.Wall(), Over: true})
			continue
		}
		r.nextEnd = min(r.nextEnd, until)
	}
	r.nextEnd = max(r.nextEnd, now.Add(50*time.Millisecond))
	return r.nextEnd
}

func (r *run) tell(p Pause) {
	if r.cfg.Paused != nil {
		r.cfg.Paused(p)
	}
}

// throttled returns the record of a job whose last attempt was refused with a
// hint, and that may not or cannot wait for as long as that.
func (t *task) throttled(r *run, d schedule.Deferral, now limits.Time) *results.Record {
	rec := t.finish(r, results.Deferred, end{outcome: t.last, ended: now})
	asked := t.last.Hint.Wait.Round(time.Millisecond)
	why := fmt.Sprintf("the server asked for %v", asked)
	switch {
	case d.Why == schedule.LongPause:
		why += fmt.Sprintf(", more than max_wait %v", t.MaxWait)
	case t.hinted > maxHinted:
		why = fmt.Sprintf("refused %d times, and asked to come back later", t.hinted)
	case t.Deadline != limits.Never:
		why += fmt.Sprintf(", %v left", max(0, t.Deadline.Sub(now)).Round(time.Millisecond))
	}
	rec.Deferred = &results.Deferral{Reason: why, Deadline: results.At(t.Deadline)}
	last := t.attempts[len(t.attempts)-1].Hint
	rec.Deferred.Key, rec.Deferred.RetryAt = last.Key, last.Until
	return rec
}
