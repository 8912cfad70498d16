// Package report says from records alone what happened in a run, or what a plan
// foresees: as JSON, CSV, Markdown, JUnit's XML, and one page of HTML.
package report

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"io"
	"iter"
	"slices"
	"time"
	"unique"

	"agentlimit/limits"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

// Options says what the records are of.
type Options struct {
	Title    string
	Forecast bool // nothing has happened yet: they are a plan's

	// Limits returns what a key allows; for the zero Key, how many attempts one run
	// may have under way. Nil: unknown.
	Limits func(limits.Key) limits.Limit
}

// Report is what records say. Of a job with several records the newest counts, but
// all attempts of all of them do. Times are in milliseconds where the name says so.
type Report struct {
	V         int                      `json:"v"` // of the format: 1
	Title     string                   `json:"title"`
	Forecast  bool                     `json:"forecast,omitempty"`
	Runs      int                      `json:"runs"`
	StartedAt results.Time             `json:"started_at,omitzero"`
	EndedAt   results.Time             `json:"ended_at,omitzero"`
	Took      float64                  `json:"took_ms"` // without the time between runs
	Jobs      int64                    `json:"jobs"`
	Attempts  int64                    `json:"attempts"`
	Statuses  map[results.Status]int64 `json:"statuses"`
	Waited    results.Waits            `json:"waited"` // of all attempts
	Troubles  Troubles                 `json:"troubles"`
	Keys      []*Key                   `json:"keys"`  // the global cap, then hosts, accounts and pools by name
	Hosts     []*Latency               `json:"hosts"` // by name
	Pauses    []Pause                  `json:"pauses"`

	jobs  []job // in the order in which they were met
	axis  axis
	lines []*line // of the keys that are drawn
	known bool    // the limits are
}

// Key is what one key was used for.
type Key struct {
	audit.KeyReport
	Waited results.Waits `json:"waited"` // of the attempts started

	Held  time.Duration `json:"-"` // for which attempts had its permits, added up
	Spent int64         `json:"-"` // tokens
}

// Pause is a time in which a key admits nothing, as services asked.
type Pause struct {
	Key   limits.Key   `json:"key"`
	From  results.Time `json:"from"`
	Until results.Time `json:"until"`
}

// job is how a job ended, by its newest record. There may be millions.
type job struct {
	id             string
	trouble        *Trouble    // nil: it succeeded
	started, ended limits.Time // the first start; zero without an attempt
	took           time.Duration
	attempts       int32

	host, account unique.Handle[string]
	status        unique.Handle[results.Status]
}

// New reads records, which may come from several files in any order. Its error is
// the first of records.
func New(records iter.Seq2[results.Record, error], o Options) (*Report, error) {
	g := &gatherer{
		Report: &Report{
			V: 1, Title: o.Title, Forecast: o.Forecast, known: o.Limits != nil,
			Troubles: Troubles{}, Keys: []*Key{}, Hosts: []*Latency{}, Pauses: []Pause{}, // in JSON no list is null
		},
		newest: make(map[uint64]int32), seed: maphash.MakeSeed(), runs: make(map[string]*span),
		keys: make(map[limits.Key]*Key), hosts: make(map[string]*Latency), pauses: make(map[limits.Key][]span),
	}
	var failed error
	found := audit.Check(func(yield func(results.Record, error) bool) {
		for r, err := range records {
			if err != nil {
				failed = err
				break
			}
			g.add(&r)
			r.Run = "" // all runs have one line of what is under way
			yield(r, nil)
		}
		g.layTimes()
	}, audit.Spec{
		KeysOnly: true,
		Watch:    g.watch,
		Limits: func(key limits.Key) limits.Limit {
			if o.Limits == nil || key == (limits.Key{}) && len(g.runs) > 1 { // each has a cap of its own
				return limits.Limit{}
			}
			return o.Limits(key)
		},
	})
	if failed != nil {
		return nil, failed
	}
	g.finish(found)
	return g.Report, nil
}

// gatherer fills a report.
type gatherer struct {
	*Report
	newest map[uint64]int32 // by hash of the id: index in jobs
	seed   maphash.Seed
	runs   map[string]*span
	keys   map[limits.Key]*Key
	hosts  map[string]*Latency
	pauses map[limits.Key][]span

	swept *audit.KeyReport // the key that is told of, and
	place int              // that of its line; -1: it has none
}

func (g *gatherer) add(r *results.Record) {
	at := g.runs[r.Run]
	if at == nil {
		at = &span{limits.Never, 0}
		g.runs[r.Run] = at
	}
	at.hold(r.QueuedAt.Limits())
	at.hold(r.EndedAt.Limits())
	j := job{
		id: r.ID, host: unique.Make(r.Host), account: unique.Make(r.Account), status: unique.Make(r.Status),
		ended: r.EndedAt.Limits(), attempts: int32(len(r.Attempts)), trouble: TroubleOf(r, r.ID),
	}
	if t := j.trouble; t != nil {
		t.Reason, t.Said = once(t.Reason), once(t.Said) // of many jobs the same
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		at.hold(a.AdmittedAt.Limits())
		at.hold(a.EndedAt.Limits())
		g.attempt(r, a)
		if i == 0 {
			j.started = a.StartedAt.Limits()
		}
		j.took = a.EndedAt.Limits().Sub(j.started)
	}
	id := maphash.String(g.seed, r.ID)
	old, known := g.newest[id]
	switch {
	case !known:
		g.newest[id] = int32(len(g.jobs))
		g.jobs = append(g.jobs, j)
	case j.ended >= g.jobs[old].ended:
		g.jobs[old] = j
	}
}

func (g *gatherer) attempt(r *results.Record, a *results.Attempt) {
	g.Attempts++
	g.Waited.Add(a.Waited, 1)
	for key, cost := range a.Charge {
		k := g.key(key)
		k.Started++ // for layTimes; the audit counts again
		k.Waited.Add(a.Waited, 1)
		k.Held += a.EndedAt.Sub(a.AdmittedAt.Time)
		k.Spent += cost
	}
	host := cmp.Or(a.Host, r.Host)
	l := g.hosts[host]
	if l == nil {
		l = &Latency{Host: once(host)}
		g.hosts[l.Host] = l
	}
	l.took = append(l.took, float32(a.EndedAt.Sub(a.StartedAt.Time).Seconds()*1e3))
	if h := a.Hint; h != nil && h.Key != nil && h.Until.After(a.EndedAt.Time) {
		g.pauses[*h.Key] = append(g.pauses[*h.Key], span{a.EndedAt.Limits(), h.Until.Limits()})
	}
}

func (g *gatherer) key(key limits.Key) *Key {
	k := g.keys[key]
	if k == nil {
		k = &Key{KeyReport: audit.KeyReport{Key: key}}
		g.keys[key] = k
	}
	return k
}

// once returns the s that is in memory once, however many say it.
func once(s string) string { return unique.Make(s).Value() }

// finish adds up what has been gathered, and what the audit found.
func (g *gatherer) finish(found audit.Report) {
	g.Runs, g.Jobs = len(g.runs), int64(len(g.jobs))
	g.Statuses = make(map[results.Status]int64)
	for _, s := range results.Statuses {
		g.Statuses[s] = 0
	}
	for _, j := range g.jobs {
		g.Statuses[j.status.Value()]++
		g.Troubles.Add(j.trouble)
	}
	slices.SortStableFunc(g.Troubles, func(a, b *Trouble) int { return cmp.Compare(b.Jobs, a.Jobs) })
	for _, f := range found.Keys {
		k := g.key(f.Key)
		k.KeyReport = f
		if k.Key.Kind == limits.Global {
			k.Waited = g.Waited
		}
		g.Keys = append(g.Keys, k)
	}
	for _, l := range g.hosts {
		l.measure()
		g.Hosts = append(g.Hosts, l)
	}
	slices.SortFunc(g.Hosts, func(a, b *Latency) int { return cmp.Compare(a.Host, b.Host) })
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetIndent("", "  ")
	return lines.Encode(r)
}
