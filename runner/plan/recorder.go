package plan

import (
	"io"

	"agentlimit/jobspec"
)

// recorder is a source that keeps the jobs it hands out, without their calls, as long
// as there are not too many.
type recorder struct {
	jobspec.Source
	jobs []*jobspec.Job // nil: too many, or none
	many bool
}

// Next returns the next job.
func (r *recorder) Next() (*jobspec.Job, error) {
	j, err := r.Source.Next()
	if err != nil || r.many {
		return j, err
	}
	if len(r.jobs) == MaxRaised {
		r.jobs, r.many = nil, true
		return j, nil
	}
	r.jobs = append(r.jobs, bare(j))
	return j, nil
}

// bare returns all of a job that matters to a forecast.
func bare(j *jobspec.Job) *jobspec.Job {
	b := &jobspec.Job{
		Seq: j.Seq, ID: j.ID, Host: j.Host, Account: j.Account, Pools: j.Pools, Cost: j.Cost, PoolCost: j.PoolCost,
		Priority: j.Priority, Deadline: j.Deadline, NotBefore: j.NotBefore, Timeout: j.Timeout,
	}
	b.Retry.MaxWait = j.Retry.MaxWait
	if j.Exec != nil {
		b.Exec = &jobspec.Exec{}
	}
	return b
}

// replay is a source of jobs that were kept, in the order in which they were handed
// out before.
type replay []*jobspec.Job

// Next returns the next job.
func (r *replay) Next() (*jobspec.Job, error) {
	if len(*r) == 0 {
		return nil, io.EOF
	}
	j := (*r)[0]
	*r = (*r)[1:]
	return j, nil
}

// Hidden reports false: nothing is.
func (*replay) Hidden() bool { return false }
