package runner

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
)

// Simulate is [Run] on a clock that begins at began and skips all waiting. No call is
// made: each attempt succeeds after what takes says of its job, or after the job's
// timeout if that is shorter. Whatever decides in a run decides here, too; only who
// waits for what is left out. It uses no goroutine, and of cfg neither Coordinator,
// Caller, Grace nor Kill. It returns when the last job ended; the error is Run's.
func Simulate(cfg Config, began limits.Time, takes func(*jobspec.Job) time.Duration) (limits.Time, error) {
	now := began
	cfg.Coordinator = limits.NewLocalAt(func() limits.Time { return now })
	r := newRun(cfg)
	r.hired = cfg.Global  // nobody else is needed
	var underWay []ending // the last to end first
	for {
		if err := r.append(r.unwritten); err != nil {
			r.fail(err)
		}
		r.unwritten = r.unwritten[:0]
		r.readAll()
		r.settle()
		if len(r.starts) > 0 {
			for len(r.starts) > 0 {
				t := <-r.starts
				d := takes(t.job)
				e := ending{now.Add(min(d, cmp.Or(t.job.Timeout, d))), t}
				at, _ := slices.BinarySearchFunc(underWay, e.at, func(x ending, at limits.Time) int { return cmp.Compare(at, x.at) })
				underWay = slices.Insert(underWay, at, e)
			}
			continue
		}
		next, last := r.schedule.Next(), len(underWay)-1
		if last >= 0 {
			next = min(next, underWay[last].at)
		}
		switch {
		case len(r.unwritten) > 0, r.room() > 0:
			continue // more may follow at this very moment
		case r.done(), r.err != nil:
			return now, r.err
		case next == limits.Never:
			return now, errors.New("simulate the run: jobs wait, and nothing is to come")
		default:
			now = max(now, next)
		}
		for ; last >= 0 && underWay[last].at <= now; last-- {
			t := underWay[last].task
			r.end(end{task: t, outcome: call.Outcome{Kind: call.OK}, started: t.start.Admitted, ended: now})
		}
		underWay = underWay[:last+1]
	}
}

// readAll takes as many jobs of the source as may wait.
func (r *run) readAll() {
	for r.room() > 0 {
		job, err := r.cfg.Source.Next()
		r.arrive(incoming{job, err})
	}
}

// ending is when an attempt under way will end.
type ending struct {
	at   limits.Time
	task *task
}
