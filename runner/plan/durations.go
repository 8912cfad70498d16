package plan

import (
	"errors"
	"iter"
	"math/rand/v2"
	"path"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// Durations say how long calls take. Of a job's call there may be said: what is
// assumed of its host, else what calls to its host took, else those of its kind, else
// all, else what is assumed of all. The zero Durations: no time at all.
type Durations struct {
	Assumed time.Duration
	Hosts   []HostDuration // the last that fits holds
	Seed    uint64         // of what is drawn from measured calls

	measured map[measure][]time.Duration
}

// HostDuration is how long calls to some hosts take. Hosts is a pattern of
// [path.Match]; jobs without a host have the host "".
type HostDuration struct {
	Hosts string
	Takes time.Duration
}

// measure names calls: those to one host, else those of one kind, else all.
type measure struct{ host, kind string }

// Measure learns from the calls of earlier runs that succeeded. A last record that was
// cut off is left out.
func (d *Durations) Measure(records iter.Seq2[results.Record, error]) error {
	if d.measured == nil {
		d.measured = make(map[measure][]time.Duration)
	}
	for r, err := range records {
		if err != nil && !errors.Is(err, results.ErrTorn) {
			return err
		}
		for _, a := range r.Attempts {
			if a.Outcome != string(call.OK) {
				continue
			}
			took := a.EndedAt.Sub(a.StartedAt.Time)
			for _, m := range d.measures(a.Host, r.Kind) {
				d.measured[m] = append(d.measured[m], took)
			}
		}
	}
	return nil
}

// Calls returns how many calls were measured.
func (d *Durations) Calls() int { return len(d.measured[measure{}]) }

// measures names what a call counts for, the most exact first.
func (*Durations) measures(host, kind string) []measure {
	all := [...]measure{{host: host}, {kind: kind}, {}}
	if host == "" {
		return all[1:]
	}
	return all[:]
}

// Of returns how long the call of a job takes: the same each time, whatever is asked
// in between.
func (d *Durations) Of(j *jobspec.Job) time.Duration {
	for i := len(d.Hosts) - 1; i >= 0; i-- {
		if fits, _ := path.Match(d.Hosts[i].Hosts, j.Host); fits {
			return d.Hosts[i].Takes
		}
	}
	for _, m := range d.measures(j.Host, j.Kind()) {
		if all := d.measured[m]; len(all) > 0 {
			return all[rand.New(rand.NewPCG(d.Seed, uint64(j.Seq))).IntN(len(all))]
		}
	}
	return d.Assumed
}
