package jobspec

import (
	"cmp"
	"slices"
	"strings"

	"agentlimit/limits"
)

var limitsFields = []field[Spec]{
	{"global", func(d *decoder, s *Spec, n *node) { fields(d, s, n, globalFields) }},
	{"hosts", func(d *decoder, _ *Spec, n *node) { d.entries(limits.Host, n) }},
	{"accounts", func(d *decoder, _ *Spec, n *node) { d.entries(limits.Account, n) }},
	{"pools", func(d *decoder, _ *Spec, n *node) { d.entries(limits.Pool, n) }},
	{"coordinator", func(d *decoder, s *Spec, n *node) { s.Coordinator = cmp.Or(s.Coordinator, d.text(n)) }},
}

var globalFields = []field[Spec]{
	{"concurrency", func(d *decoder, s *Spec, n *node) { s.Global = int(d.whole(n, 1, 1<<20)) }},
}

var entryFields = []field[limits.Entry]{
	{"concurrency", func(d *decoder, e *limits.Entry, n *node) { e.Concurrency = liftable(d, n, count) }},
	{"rate", func(d *decoder, e *limits.Entry, n *node) { e.Rate = liftable(d, n, rate) }},
	{"burst", func(d *decoder, e *limits.Entry, n *node) { e.Burst = liftable(d, n, count) }},
}

// limits reads the limits, and judges each entry when it is known whose they are.
func (d *decoder) limits(s *Spec, n *node) {
	s.limits = n
	fields(d, s, n, limitsFields)
	if !s.Shared() {
		d.table.Shard = s.source.Shard
	}
	eachEntry(n, d.checkEntry)
}

// eachEntry calls f with the entries of limits, which are n.
func eachEntry(n *node, f func(kind limits.Kind, n *node)) {
	for kind := limits.Host; kind <= limits.Pool; kind++ {
		if entries := n.get(kind.String() + "s"); entries != nil {
			for _, kid := range entries.kids {
				f(kind, kid)
			}
		}
	}
}

// Unused lists the entries of limits with a name that none of the keys has, which
// should be all that jobs need.
func (s *Spec) Unused(keys map[limits.Key]bool) (all Errors) {
	eachEntry(s.limits, func(kind limits.Kind, n *node) {
		name, _ := KeyPattern(kind, n.key)
		used := strings.HasPrefix(name, "*") || keys[limits.Key{Kind: kind, Name: name}]
		for key := range keys { // a host's entry is for each port, too
			used = used || key.Kind == limits.Host && kind == limits.Host && strings.HasPrefix(key.Name, name+":")
		}
		if !used {
			path := "limits." + kind.String() + "s." + n.key
			all = append(all, &Error{Pos: n.keyPos(), Path: path, Text: "no job needs it"})
		}
	})
	return all
}

// Shared reports whether other processes share the coordinator.
func (s *Spec) Shared() bool { return s.Coordinator != "" && s.Coordinator != "local" }

// liftable reads one field of an entry; "none" lifts what other entries say.
func liftable[T any](d *decoder, n *node, read func(*decoder, *node) T) (f limits.Field[T]) {
	if f.Set = true; n.text != "none" {
		f.Value = read(d, n)
	}
	return f
}

func count(d *decoder, n *node) int64      { return d.whole(n, 1, maxCount) }
func rate(d *decoder, n *node) limits.Rate { return parse(d, n, limits.ParseRate) }

// entries adds what is said of one kind of key to the table.
func (d *decoder) entries(kind limits.Kind, n *node) {
	d.pairs(n, func(kid *node) { d.entry(kind, kid) })
}

func (d *decoder) entry(kind limits.Kind, n *node) {
	var e limits.Entry
	fields(d, &e, n, entryFields)
	var err error
	switch e.Pattern, err = KeyPattern(kind, n.key); {
	case err != nil:
		d.failKey(n, "%q: %v", n.key, err)
	case kind == limits.Pool && e.Pattern == "requests":
		d.failKey(n, "want another name: in a job's cost, requests is the cost for its host and account")
	case !d.table.Add(kind, e):
		d.failKey(n, "%q stands for %q, which has an entry", n.key, e.Pattern)
	case kind == limits.Pool:
		d.pools = append(d.pools, e.Pattern)
	}
}

// checkEntry judges an entry together with the less exact ones behind it. A
// pattern matches itself, as if it were a key.
func (d *decoder) checkEntry(kind limits.Kind, n *node) {
	if len(d.errs) > 0 {
		return
	}
	pattern, _ := KeyPattern(kind, n.key)
	key := limits.Key{Kind: kind, Name: pattern}
	limit := d.table.For(key)
	if err := d.table.Check(key); err != nil {
		d.fail(n, "%v", err)
		return
	}
	burst, least := n.get("burst"), limit.Rate.DefaultBurst()
	switch {
	case burst == nil || burst.text == "none":
	case limit.Rate == (limits.Rate{}):
		d.fail(burst, "a burst without a rate limits nothing")
	case limit.Burst < least:
		d.warn(burst, "a burst below %d cannot hold %s on real timers", least, limit.Rate)
	}
}

// knownPool reports whether an entry of limits.pools matches name.
func (d *decoder) knownPool(name string) bool {
	return slices.ContainsFunc(d.pools, func(pattern string) bool {
		suffix, wild := strings.CutPrefix(pattern, "*")
		return name == pattern || wild && len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	})
}
