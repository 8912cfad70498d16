package jobspec

import (
	"strings"

	"agentlimit/limits"
)

// maxCount bounds permits and tokens; a coordinator counts in doubles.
const maxCount = 1 << 52

// kindKeys are the mappings of limits by the kind of key they are for.
var kindKeys = []struct {
	kind limits.Kind
	key  string
}{{limits.Host, "hosts"}, {limits.Account, "accounts"}, {limits.Pool, "pools"}}

// limits fills the table from the block n. It takes nil.
func (d *decoder) limits(n *node, s *Spec) {
	if n == nil || !d.mapping(n, "global", "hosts", "accounts", "pools", "coordinator") {
		return
	}
	if global := n.get("global"); global != nil && d.mapping(global, "concurrency") {
		if n := global.get("concurrency"); n != nil {
			s.Global = int(d.whole(n, 1, 1<<20))
		}
	}
	if n := n.get("coordinator"); n != nil {
		s.Coordinator = d.str(n)
	}
	for _, k := range kindKeys {
		block := n.get(k.key)
		if block == nil {
			continue
		}
		if block.kind != mapping {
			d.wrong(block, "want a mapping from names to limits")
			continue
		}
		for _, entry := range block.kids {
			d.entry(k.kind, entry)
		}
		for _, entry := range block.kids {
			d.checkEntry(k.kind, entry)
		}
	}
}

// entry adds one entry to the table.
func (d *decoder) entry(kind limits.Kind, n *node) {
	if !d.mapping(n, "concurrency", "rate", "burst") {
		return
	}
	pattern, err := KeyPattern(kind, n.key)
	switch {
	case err != nil:
		d.failAt(n.keyPos(), n, "%q: %v", n.key, err)
		return
	case kind == limits.Pool && pattern == "requests":
		d.failAt(n.keyPos(), n, "want another name: in a job's cost, requests is the cost for its host and account")
		return
	}
	count := func(n *node) int64 { return d.whole(n, 1, maxCount) }
	added := d.table.Add(kind, limits.Entry{
		Pattern:     pattern,
		Concurrency: field(n.get("concurrency"), count),
		Rate:        field(n.get("rate"), d.rate),
		Burst:       field(n.get("burst"), count),
	})
	if !added {
		d.failAt(n.keyPos(), n, "%q stands for %q, which has an entry", n.key, pattern)
	}
	if kind == limits.Pool {
		d.pools = append(d.pools, pattern)
	}
}

// field reads one field of an entry; "none" lifts what other entries say.
func field[T any](n *node, read func(*node) T) limits.Field[T] {
	switch {
	case n == nil:
		return limits.Field[T]{}
	case none(n):
		return limits.Field[T]{Set: true}
	}
	return limits.Field[T]{Value: read(n), Set: true}
}

func (d *decoder) rate(n *node) limits.Rate {
	text := d.scalar(n)
	rate, err := limits.ParseRate(text)
	if err != nil && text != "" {
		d.wrong(n, err.Error())
	}
	return rate
}

// checkEntry judges an entry together with the less exact ones behind it. A
// pattern matches itself, as if it were a key.
func (d *decoder) checkEntry(kind limits.Kind, n *node) {
	pattern, err := KeyPattern(kind, n.key)
	if err != nil || len(d.errs) > 0 {
		return
	}
	limit := d.table.For(limits.Key{Kind: kind, Name: pattern})
	burst := n.get("burst")
	if err := limit.Validate(); err != nil {
		d.fail(n, "%v", err)
	}
	if burst == nil || none(burst) {
		return
	}
	if limit.Rate == (limits.Rate{}) {
		d.fail(burst, "a burst without a rate limits nothing")
	} else if least := limit.Rate.DefaultBurst(); limit.Burst < least {
		d.warn(burst, "%s: a burst below %d cannot hold %s on real timers", d.pathOf(burst), least, limit.Rate)
	}
}

// knownPool reports whether an entry of limits.pools matches name.
func (d *decoder) knownPool(name string) bool {
	for _, pattern := range d.pools {
		suffix, wild := strings.CutPrefix(pattern, "*")
		if name == pattern || wild && len(name) > len(suffix) && strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
