package jobspec

import (
	"slices"
	"strings"
)

// layers is a mapping of a job in front of the same mapping of the defaults.
type layers struct{ own, base *node }

func (l layers) get(key string) *node {
	if n := l.own.get(key); n != nil {
		return n
	}
	return l.base.get(key)
}

// oneOf returns the one of keys that is there. What a job says itself stands for
// all of them, so that a default body does not meet a job's own json.
func (d *decoder) oneOf(l layers, keys ...string) (found *node) {
	for _, layer := range []*node{l.own, l.base} {
		for _, key := range keys {
			n := layer.get(key)
			if n != nil && found != nil {
				d.failAt(n.keyPos(), n, "want one of %s", strings.Join(keys, ", "))
			} else if n != nil {
				found = n
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// block returns the mapping under key in both layers; its keys must be known.
// Defaults are checked by themselves.
func (d *decoder) block(l layers, key string, known ...string) layers {
	inner := layers{l.own.get(key), l.base.get(key)}
	if inner.own != nil && !d.mapping(inner.own, known...) && inner.own.kind != mapping {
		inner.own = nil
	}
	return inner
}

// pairs calls f with the values of a mapping from names, those of the defaults
// first unless the job has its own. same tells whether two names are one. Both
// nodes may be nil.
func (d *decoder) pairs(own, base *node, same func(a, b string) bool, f func(*node)) {
	if own != nil && own.kind != mapping {
		d.wrong(own, "want a mapping from names to values")
		return
	}
	if base != nil {
		for _, kid := range base.kids {
			if own == nil || !slices.ContainsFunc(own.kids, func(n *node) bool { return same(n.key, kid.key) }) {
				f(kid)
			}
		}
	}
	if own == nil {
		return
	}
	for i, kid := range own.kids {
		if slices.ContainsFunc(own.kids[:i], func(n *node) bool { return same(n.key, kid.key) }) {
			d.failAt(kid.keyPos(), kid, "doubled key")
		}
		f(kid)
	}
}

func equal(a, b string) bool { return a == b }
