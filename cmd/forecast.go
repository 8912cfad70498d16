package cmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/plan"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// assumed says how long calls were taken to last.
func (o *planOptions) assumed() string {
	text := exact(o.durations.Assumed)
	if n := o.durations.Calls(); n > 0 {
		text = fmt.Sprintf("as long as one of %d in %s (--seed %d)", n, strings.Join(o.from, ", "), o.durations.Seed)
	}
	for _, h := range o.durations.Hosts {
		text += fmt.Sprintf(", to %s %s", h.Hosts, exact(h.Takes))
	}
	return text
}

// describe tells a forecast in the words of a run's summary.
func (o *planOptions) describe(f *plan.Forecast, began limits.Time, total int64, troubles report.Troubles) string {
	var b strings.Builder
	until := began.Add(f.Took).Wall().Local().Format(time.RFC3339)
	fmt.Fprintf(&b, "forecast: %s in %s, until %s\n", counted(f.Summary, total), brief(f.Took), until)
	fmt.Fprintf(&b, "  if all calls succeed and take %s\n", printable(o.assumed()))
	if f.Binding != nil {
		fmt.Fprintf(&b, "  bound by %s\n", printable(describeBinding(f)))
	}
	writeDetails(&b, f.Summary, troubles, f.Took)
	return b.String()
}

// describeBinding tells which limit binds, and what more of it would gain.
func describeBinding(f *plan.Forecast) string {
	b := f.Binding
	text := fmt.Sprintf("%s: %s, busy %.0f%% of the time", b.Key, spell(binding(b.Limit, b.ByRate)), 100*b.Busy.Seconds()/f.Took.Seconds())
	if b.Then == nil {
		return text
	}
	more := spell(binding(b.Raised, b.ByRate))
	if b.ByRate {
		more = "a tenth more, " + more + ","
	}
	text += fmt.Sprintf("; with %s %s", more, brief(b.Then.Took))
	if before, then := len(f.Deferred), len(b.Then.Deferred); before+then > 0 {
		text += fmt.Sprintf(" and %d deferred", then)
	}
	return text
}

// forecastAccount is a forecast in numbers.
type forecastAccount struct {
	V        int                      `json:"v"`
	Began    results.Time             `json:"started_at"`
	Ended    results.Time             `json:"ended_at"`
	Finish   float64                  `json:"finish_s"` // from the start
	Assumed  string                   `json:"assumed"`
	Seed     uint64                   `json:"seed,omitempty"` // of what was drawn
	Counts   map[results.Status]int64 `json:"counts"`
	Deferred []plan.Deferred          `json:"deferred"`
	Binding  *bindingAccount          `json:"binding,omitempty"`
	Keys     []keyAccount             `json:"keys"`
}

// bindingAccount is the limit that binds.
type bindingAccount struct {
	Key limits.Key `json:"key"`
	results.Bounds
	Busy   float64        `json:"busy"`
	Raised *raisedAccount `json:"raised,omitempty"`
}

// binding is the one field of a limit that it is about.
func binding(l limits.Limit, rate bool) results.Bounds {
	if rate {
		return results.Bounds{Rate: l.Rate.String()}
	}
	return results.Bounds{Concurrency: l.Concurrency}
}

func spell(b results.Bounds) string {
	return cmp.Or(b.Rate, fmt.Sprintf("%d at once", b.Concurrency))
}

// raisedAccount is what more of the limit would make of the run.
type raisedAccount struct {
	results.Bounds
	Finish   float64 `json:"finish_s"`
	Deferred int     `json:"deferred"`
}

// inNumbers returns the numbers of a forecast.
func (o *planOptions) inNumbers(f *plan.Forecast, began limits.Time) *forecastAccount {
	a := &forecastAccount{
		V: 1, Began: results.At(began), Ended: results.At(began.Add(f.Took)), Finish: f.Took.Seconds(), Assumed: o.assumed(),
		Counts: f.Summary.Ended, Deferred: append([]plan.Deferred{}, f.Deferred...), Keys: []keyAccount{},
	}
	if o.durations.Calls() > 0 {
		a.Seed = o.durations.Seed
	}
	if b := f.Binding; b != nil {
		a.Binding = &bindingAccount{Key: b.Key, Bounds: binding(b.Limit, b.ByRate), Busy: b.Busy.Seconds() / f.Took.Seconds()}
		if b.Then != nil {
			a.Binding.Raised = &raisedAccount{binding(b.Raised, b.ByRate), b.Then.Took.Seconds(), len(b.Then.Deferred)}
		}
	}
	for _, k := range f.Summary.Keys {
		a.Keys = append(a.Keys, keyInNumbers(k, f.Took))
	}
	return a
}
