package runner

import (
	"cmp"
	"context"
	"iter"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/results"
)

// Past is what earlier runs on a results file left: the newest record of each
// job, and the pauses that services asked for.
type Past struct {
	jobs   map[string]pastJob
	Pauses []limits.PauseRequest // of which some may be over
}

type pastJob struct {
	status results.Status
	hash   string
	run    string
}

// ReadPast reads the records of earlier runs, oldest first, as long as ctx is not done.
func ReadPast(ctx context.Context, records iter.Seq2[results.Record, error]) (*Past, error) {
	p := &Past{jobs: make(map[string]pastJob)}
	for r, err := range records {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		p.Add(&r)
		for _, a := range r.Attempts {
			if h := a.Hint; h != nil && h.Key != nil {
				p.Pauses = append(p.Pauses, limits.PauseRequest{Key: *h.Key, Until: h.Until.Limits()})
			}
		}
	}
	return p, nil
}

// Add takes one more record, newer than all before.
func (p *Past) Add(r *results.Record) { p.jobs[r.ID] = pastJob{r.Status, r.Hash, r.Run} }

// Ended reports whether a job that a run had sent has its record from that run.
func (p *Past) Ended(run, id string) bool { return p.jobs[id].run == run }

// left says whether a job is still to be done, and if not, how it ended: it is to
// be done without a record, or if it did not succeed, or if its call is another
// one now (changed). A job of unknown fate is left alone but for retryUnknown.
func (p *Past) left(j *jobspec.Job, retryUnknown bool) (todo, changed bool, status results.Status) {
	if p == nil {
		return true, false, ""
	}
	old, known := p.jobs[j.ID]
	switch {
	case !known:
		return true, false, ""
	case old.hash != j.Hash:
		return true, true, old.status
	case old.status == results.Succeeded, old.status == results.Unknown && !retryUnknown:
		return false, false, old.status
	}
	return true, false, old.status
}
