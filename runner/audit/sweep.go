package audit

import (
	"cmp"
	"math"
	"slices"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// judge sweeps over what happened on one key.
func (b *book) judge(key limits.Key, l *ledger) {
	slices.SortFunc(l.spells, func(a, b spell) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.job, b.job))
	})
	b.judgePauses(key, l)
	if key.Kind == limits.Pair || len(l.spells) == 0 {
		return
	}
	k := KeyReport{Key: key, Started: int64(len(l.spells))}
	if key.Kind == limits.Global {
		k.Run, k.Limit.Concurrency = key.Name, b.spec.Limits(limits.Key{}).Concurrency
	} else {
		k.Limit = b.spec.Limits(key)
	}
	k.Bounds = results.BoundsOf(k.Limit)
	b.judgePermits(&k, l.spells)
	if k.Limit.Rate.Per > 0 {
		b.judgeBucket(&k, l.spells)
	}
	b.found.Keys = append(b.found.Keys, k)
}

// judgePermits counts how many spells overlap. At equal moments what ends makes
// room for what starts; a spell that ends as it starts takes part for that
// moment, and is sorted before those that last.
func (b *book) judgePermits(k *KeyReport, spells []spell) {
	ends := make([]limits.Time, 0, len(spells))
	for _, s := range spells {
		if s.to > s.from {
			ends = append(ends, s.to)
		}
	}
	slices.Sort(ends)
	open, most := int64(0), k.Limit.Concurrency
	closeUntil := func(now limits.Time) {
		for ; len(ends) > 0 && ends[0] <= now; ends = ends[1:] {
			open--
			b.watch(k, ends[0], open, 0)
		}
	}
	for _, s := range spells {
		closeUntil(s.from)
		if open+1 > k.Peak {
			k.Peak = open + 1
			if most > 0 && k.Peak == most+1 {
				b.report(Concurrency, k.Key, b.id(s.job), s.from, "%v: %d under way where %d may be, when job %q was admitted", k.Key, k.Peak, most, b.id(s.job))
			}
		}
		b.watch(k, s.from, open+1, s.paid)
		if s.to > s.from {
			open++
		} else {
			b.watch(k, s.from, open, 0)
		}
	}
	closeUntil(limits.Never)
}

func (b *book) watch(k *KeyReport, at limits.Time, underWay, spent int64) {
	if b.spec.Watch != nil {
		b.spec.Watch(k, at, underWay, spent)
	}
}

// judgeBucket compares every window from one admission to another with what
// burst and refill allow, in one pass. In units of token·Per, debt is the largest
// of spent − refilled over the windows that end here: either the one that ended
// at the admission before goes on, or, once refill has paid it off, a new one
// begins. The window must not owe more than the burst.
func (b *book) judgeBucket(k *KeyReport, spells []spell) {
	rate, burst := k.Limit.Rate, k.Limit.Burst*k.Limit.Rate.Per
	var debt, spent, worst int64
	var from, last limits.Time
	for _, s := range spells {
		if s.paid == 0 {
			continue
		}
		if elapsed := int64(s.from - last); elapsed > (debt-1)/rate.Tokens {
			debt, spent, from = 0, 0, s.from
		} else {
			debt -= elapsed * rate.Tokens
		}
		last = s.from
		spent = add(spent, s.paid, 1)
		debt = add(debt, s.paid, rate.Per)
		if debt <= worst {
			continue
		}
		k.Tightest = &Window{From: results.At(from), To: results.At(s.from), Spent: spent, Allowed: spent + floorDiv(burst-debt, rate.Per)}
		if worst <= burst && debt > burst {
			b.report(Rate, k.Key, b.id(s.job), s.from, "%v: %d tokens spent within %v where %d may be, the last by job %q",
				k.Key, spent, s.from.Sub(from), k.Tightest.Allowed, b.id(s.job))
		}
		worst = debt
	}
}

// judgePauses looks for admissions inside a pause.
func (b *book) judgePauses(key limits.Key, l *ledger) {
	slices.SortFunc(l.pauses, func(a, b pause) int { return cmp.Compare(a.from, b.from) })
	var longest pause
	pauses := l.pauses
	for _, s := range l.spells {
		for ; len(pauses) > 0 && pauses[0].from < s.from; pauses = pauses[1:] {
			if pauses[0].until > longest.until {
				longest = pauses[0]
			}
		}
		if s.from < longest.until {
			b.report(Paused, key, b.id(s.job), s.from, "%v: job %q was admitted %v before the end of the pause that job %q was asked for",
				key, b.id(s.job), longest.until.Sub(s.from), b.id(longest.job))
			return
		}
	}
}

// add returns sum + n·unit, all of them at least zero, or the largest number
// where that is too large.
func add(sum, n, unit int64) int64 {
	if n > (math.MaxInt64-sum)/unit {
		return math.MaxInt64
	}
	return sum + n*unit
}

// floorDiv returns a ÷ b, rounded down; b is above zero.
func floorDiv(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}
