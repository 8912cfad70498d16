package runner

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
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
	r.hired = cfg.Global // nobody else is needed
	var underWay endings
	for {
		if err := r.append(r.unwritten); err != nil {
			r.fail(err)
		}
		r.unwritten = r.unwritten[:0]
		r.readAll()
		r.settle()
		if r.asking {
			r.answered(cfg.Coordinator.Sync(context.Background(), <-r.batches, &r.reply))
			for len(r.starts) > 0 {
				t := <-r.starts
				d := takes(t.job)
				heap.Push(&underWay, ending{now.Add(min(d, cmp.Or(t.job.Timeout, d))), t})
			}
			continue
		}
		switch next := min(r.schedule.Next(), underWay.next()); {
		case len(r.unwritten) > 0, r.room():
			continue // more may follow at this very moment
		case r.done(), r.err != nil:
			return now, r.err
		case next == limits.Never:
			return now, errors.New("simulate the run: jobs wait, and nothing is to come")
		default:
			now = max(now, next)
		}
		for underWay.next() <= now {
			t := heap.Pop(&underWay).(ending).task
			r.end(end{task: t, outcome: call.Outcome{Kind: call.OK}, started: t.start.Admitted, ended: now})
		}
	}
}

// readAll takes as many jobs of the source as may wait.
func (r *run) readAll() {
	for r.room() {
		job, err := r.cfg.Source.Next()
		r.arrive(incoming{job, err})
	}
}

// ending is when an attempt under way will end.
type ending struct {
	at   limits.Time
	task *task
}

// endings is a heap (see [heap.Interface]), the first to end on top.
type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// next returns when the first attempt ends, and [limits.Never] if there is none.
func (e endings) next() limits.Time {
	if len(e) == 0 {
		return limits.Never
	}
	return e[0].at
}
