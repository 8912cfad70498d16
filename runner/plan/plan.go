// Package plan forecasts a run: it simulates it, and says when it would end, what
// would be deferred, which limit makes it as long as it is, and what more of that
// would gain. It knows nothing of failures: in a forecast every call succeeds.
package plan

import (
	"math/big"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// MaxRaised is how many jobs a run may have for the gain to be found: it needs a second
// simulation, of jobs that are kept in memory.
const MaxRaised = 100_000

// Forecast is how a run would go.
type Forecast struct {
	Took     time.Duration // from its begin to its end
	Summary  runner.Summary
	Deferred []Deferred // in the order in which they would be given up
	Binding  *Binding   // nil: no limit is ever used
}

// Deferred is a job that would be deferred.
type Deferred struct {
	ID string `json:"id"`
	results.Deferral
}

// Binding is the limit that makes a run as long as it is: the one whose calls need
// the longest (see [runner.KeyStats.Busy]).
type Binding struct {
	Key    limits.Key // the zero Key: the global cap
	Limit  limits.Limit
	ByRate bool // it is the rate, not the concurrency
	Busy   time.Duration
	Raised limits.Limit // by one permit or a tenth of the rate
	Then   *Forecast    // with Raised; nil: there are too many jobs, or it cannot be raised
}

// Make forecasts the run of cfg from began on, with calls that take as long as takes
// says, always the same for a job. What cfg may leave out, and what it does, is said
// at [runner.Simulate]; beyond that, Records may be nil, and Stats is not used.
func Make(cfg runner.Config, began limits.Time, takes func(*jobspec.Job) time.Duration) (*Forecast, error) {
	taken := &recorder{Source: cfg.Source}
	cfg.Source = taken
	f, err := simulate(cfg, began, takes)
	if err != nil {
		return nil, err
	}
	f.Binding = binding(f.Summary, cfg.Global)
	b := f.Binding
	if b == nil || taken.jobs == nil || b.Raised.Validate() != nil {
		return f, nil
	}
	again := replay(taken.jobs)
	cfg.Source, cfg.Records = &again, nil
	cfg.Queue = MaxRaised // they are in memory anyway
	if b.Key == (limits.Key{}) {
		cfg.Global++
	} else {
		before := cfg.Limits
		cfg.Limits = func(key limits.Key) limits.Limit {
			if key == b.Key {
				return b.Raised
			}
			return before(key)
		}
	}
	b.Then, err = simulate(cfg, began, takes)
	return f, err
}

// simulate makes a forecast that does not say what binds it.
func simulate(cfg runner.Config, began limits.Time, takes func(*jobspec.Job) time.Duration) (*Forecast, error) {
	f := &Forecast{}
	cfg.Records, cfg.Stats = &sink{cfg.Records, f}, runner.NewStats(cfg.Limits)
	ended, err := runner.Simulate(cfg, began, takes)
	f.Took, f.Summary = ended.Sub(began), cfg.Stats.Summary()
	return f, err
}

// sink takes a forecast's records: it keeps what was deferred, and passes them on.
type sink struct {
	runner.Sink // nil: nobody wants them
	forecast    *Forecast
}

// Append takes records.
func (s *sink) Append(records ...*results.Record) error {
	for _, r := range records {
		if r.Deferred != nil {
			s.forecast.Deferred = append(s.forecast.Deferred, Deferred{r.ID, *r.Deferred})
		}
	}
	if s.Sink == nil {
		return nil
	}
	return s.Sink.Append(records...)
}

// binding returns the limit that is busy longest.
func binding(sum runner.Summary, global int) (b *Binding) {
	whole := runner.KeyStats{Limit: limits.Limit{Concurrency: int64(global)}, Held: sum.Held}
	for _, k := range append(sum.Keys, whole) {
		busy, byRate := k.Busy()
		if busy > 0 && (b == nil || busy > b.Busy) {
			b = &Binding{Key: k.Key, Limit: k.Limit, ByRate: byRate, Busy: busy, Raised: raise(k.Limit, byRate)}
		}
	}
	return b
}

// raise returns a limit with one permit more, or a rate that is higher by a tenth.
func raise(l limits.Limit, rate bool) limits.Limit {
	if !rate {
		l.Concurrency++
		return l
	}
	more := big.NewRat(l.Rate.Tokens*11, l.Rate.Per*10)
	l.Rate = limits.Rate{Tokens: more.Num().Int64(), Per: more.Denom().Int64()}
	return l
}
