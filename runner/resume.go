package runner

import (
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

// ReadPast reads the records of earlier runs, oldest first.
func ReadPast(records iter.Seq2[results.Record, error]) (*Past, error) {
	p := &Past{jobs: make(map[string]pastJob)}
	for r, err := range records {
		if err != nil {
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
func (p *Past) Ended(s results.Sent) bool { return p.jobs[s.ID].run == s.Run }

// Remaining is a source of the jobs that the past leaves to do: those without a
// record, those that did not succeed, and those whose call is another one now. A
// job of unknown fate is left alone but for RetryUnknown.
type Remaining struct {
	jobspec.Source
	Past         *Past
	RetryUnknown bool
	Stats        *Stats             // counts the jobs left out
	Changed      func(*jobspec.Job) // is told of a job whose call changed; may be nil
}

// Next returns the next job to do.
func (s *Remaining) Next() (*jobspec.Job, error) {
	for {
		j, err := s.Source.Next()
		if err != nil {
			return nil, err
		}
		old, known := s.Past.jobs[j.ID]
		switch {
		case !known:
			return j, nil
		case old.hash != j.Hash:
			if s.Changed != nil {
				s.Changed(j)
			}
			return j, nil
		case old.status == results.Succeeded, old.status == results.Unknown && !s.RetryUnknown:
			s.Stats.update(func(sum *Summary) { sum.Jobs++; sum.Earlier++; sum.Ended[old.status]++ })
		default:
			return j, nil
		}
	}
}
