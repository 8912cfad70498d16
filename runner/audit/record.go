package audit

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

func (b *book) add(r *results.Record) {
	if flaw := flawOf(r); flaw != "" {
		b.report(Damaged, limits.Key{}, r.ID, r.EndedAt.Limits(), "%s", flaw)
	}
	job := int32(b.found.Records)
	b.found.Records++
	if !b.spec.KeysOnly {
		run, known := b.runs[r.Run]
		if !known {
			run = int32(len(b.runs))
			b.runs[r.Run] = run
		} else if run < b.file.firstRun {
			b.reportJob(Doubled, r.ID, r.EndedAt.Limits(), "job %q has a record of a run of an earlier file", r.ID)
		}
		b.endings = append(b.endings, ending{
			id: r.ID, hash: maphash.String(b.seed, r.Hash), at: r.EndedAt.Limits(), run: run,
			succeeded: r.Status == results.Succeeded, invalid: r.Status == results.Invalid,
		})
	}
	var terms Terms
	if b.spec.Terms != nil {
		if t := b.spec.Terms(r.ID, r.Hash); t != nil {
			terms = *t
		}
	}
	for i := range r.Attempts {
		b.found.Attempts++
		b.attempt(r, &r.Attempts[i], job, terms)
	}
}

// flawOf says why no job ends with such a record; empty if one may.
func flawOf(r *results.Record) string {
	switch {
	case r.ID == "" || !slices.Contains(results.Statuses[:], r.Status):
		return fmt.Sprintf("a record of the job %q with the status %q", r.ID, r.Status)
	case r.Status == results.Succeeded && len(r.Attempts) == 0:
		return fmt.Sprintf("job %q succeeded without an attempt", r.ID)
	case r.Status == results.Deferred && (r.Deferred == nil || r.Deferred.Reason == ""):
		return fmt.Sprintf("job %q was deferred without a reason", r.ID)
	}
	return ""
}

// attempt enters one attempt into the ledgers of its keys.
func (b *book) attempt(r *results.Record, a *results.Attempt, job int32, terms Terms) {
	s := spell{from: a.AdmittedAt.Limits(), to: a.EndedAt.Limits(), job: job}
	started := a.StartedAt.Limits()
	if s.from <= 0 || started < s.from || s.to < started {
		b.report(Damaged, limits.Key{}, r.ID, s.from, "job %q: an attempt was not admitted, started and ended in this order", r.ID)
		s.to = max(s.from, s.to)
	}
	if deadline := r.Deadline.Limits(); deadline != 0 && started > deadline {
		b.report(Late, limits.Key{}, r.ID, started, "job %q was started %v after its deadline", r.ID, started.Sub(deadline))
	} else if deadline == 0 && terms.Deadline {
		b.report(Late, limits.Key{}, r.ID, started, "job %q was started without its deadline", r.ID)
	}
	for key, cost := range a.Charge {
		s.paid = max(0, cost)
		b.enter(key, s)
	}
	s.paid = 0
	host := cmp.Or(a.Host, r.Host)
	b.unpaid(r, a, s, host, terms)
	b.enter(limits.Key{Kind: limits.Global, Name: r.Run}, s)
	if host != "" && r.Account != "" && !b.spec.KeysOnly { // it is judged for pauses only
		b.enter(limits.PairKey(host, r.Account), s)
	}
	if h := a.Hint; h != nil && h.Key != nil && !b.spec.KeysOnly {
		l := b.ledger(*h.Key)
		l.pauses = append(l.pauses, pause{s.to.Add(b.spec.PauseLag), h.Until.Limits(), job})
	}
}

func (b *book) enter(key limits.Key, s spell) {
	l := b.ledger(key)
	l.spells = append(l.spells, s)
}

// unpaid reports the keys of the job that the attempt did not pass, and counts
// it against them all the same, and those that were paid too little.
func (b *book) unpaid(r *results.Record, a *results.Attempt, s spell, host string, terms Terms) {
	needs := append(b.needs[:0], terms.Needs...)
	add := func(kind limits.Kind, name string) {
		key := limits.Key{Kind: kind, Name: name}
		if name != "" && !slices.ContainsFunc(needs, func(n limits.Need) bool { return n.Key == key }) {
			needs = append(needs, limits.Need{Key: key})
		}
	}
	add(limits.Host, host)
	add(limits.Account, r.Account)
	for _, pool := range r.Pools {
		add(limits.Pool, pool)
	}
	b.needs = needs
	for _, n := range needs {
		paid, passed := a.Charge[n.Key]
		if passed && paid >= n.Cost {
			continue
		}
		message := fmt.Sprintf("job %q was admitted without %v", r.ID, n.Key)
		if passed {
			message = fmt.Sprintf("job %q paid %d tokens to %v where %d are due", r.ID, paid, n.Key, n.Cost)
		} else {
			b.enter(n.Key, s)
		}
		b.report(Unpaid, n.Key, r.ID, s.from, "%s", message)
	}
}
