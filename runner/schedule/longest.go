package schedule

import (
	"cmp"

	"agentlimit/limits"
)

// Wait is what one job waits for, and since when. The zero Wait is none.
type Wait struct {
	Since limits.Time
	Cause Cause
	Key   limits.Key // whose permits, tokens or pause; zero for the global cap and the job's own times
}

// Longest returns the longest wait of all jobs, of which none waits before its
// not_before. It looks at every job.
func (s *Schedule) Longest(now limits.Time) Wait {
	var longest *Job
	s.Each(func(j *Job) {
		if j.phase == notDue && j.dueFor == NotBefore {
			return
		}
		if longest == nil || cmp.Or(cmp.Compare(j.since(), longest.since()), cmp.Compare(j.Seq, longest.Seq)) < 0 {
			longest = j
		}
	})
	if longest == nil {
		return Wait{}
	}
	cause, key := s.waitsFor(longest, now)
	return Wait{longest.since(), cause, key}
}

// since returns from when on a job could have started.
func (j *Job) since() limits.Time {
	if j.dueFor == NotBefore {
		return max(j.added, j.due)
	}
	return j.added
}

// waitsFor says what keeps a waiting job from starting now, the first in
// admission order of several permits, the last of several moments.
func (s *Schedule) waitsFor(j *Job, now limits.Time) (Cause, limits.Key) {
	if j.phase == notDue {
		return j.dueFor, limits.Key{}
	}
	for _, k := range j.lane.keys {
		if k.full() {
			return causeOf(k.id.Kind), k.id
		}
	}
	switch d, at := s.earliest(j, now); {
	case at > now && d.Why == InPause:
		return Pause, d.Key
	case at > now:
		return Rate, d.Key
	}
	return j.lane.cause, j.lane.block
}
