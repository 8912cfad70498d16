package limits

import (
	"cmp"
	"slices"
	"strings"
)

// Entry is what a job file says of the keys that match one pattern: a name, or
// "*" followed by a suffix. Each field is set, lifted or left to a less exact
// entry.
type Entry struct {
	Pattern     string
	Concurrency Field[int64]
	Rate        Field[Rate]
	Burst       Field[int64]
}

// Field is one field of an [Entry]. The zero Field says nothing; a Field that
// is Set with a zero Value lifts the limit ("none").
type Field[T any] struct {
	Value T
	Set   bool
}

// Table holds the limits of one run by kind and pattern. It is built with Add
// and may be read by many goroutines once built. The zero Table limits nothing.
type Table struct {
	Shard Shard // whose part of each limit counts

	exact map[Key]Entry
	wild  [Pair + 1][]Entry // longest suffix first
}

// Add puts one entry into the table. It reports false, and changes nothing, if
// the table has an entry of that kind and pattern.
func (t *Table) Add(kind Kind, e Entry) bool {
	suffix, wild := strings.CutPrefix(e.Pattern, "*")
	if !wild {
		key := Key{kind, e.Pattern}
		if _, found := t.exact[key]; found {
			return false
		}
		if t.exact == nil {
			t.exact = make(map[Key]Entry)
		}
		t.exact[key] = e
		return true
	}
	at, found := slices.BinarySearchFunc(t.wild[kind], suffix, func(e Entry, suffix string) int {
		have := e.Pattern[1:]
		return cmp.Or(cmp.Compare(len(suffix), len(have)), cmp.Compare(have, suffix))
	})
	if !found {
		t.wild[kind] = slices.Insert(t.wild[kind], at, e)
	}
	return !found
}

// Empty reports whether the table limits nothing at all.
func (t *Table) Empty() bool {
	for _, wild := range t.wild {
		if len(wild) > 0 {
			return false
		}
	}
	return len(t.exact) == 0
}

// For returns the limit of one key. Each field comes from the most exact entry
// that has it: the name, then (for a host with a port) the name without its
// port, then the longest wildcard. A rate without a burst gets
// [Rate.DefaultBurst]. Of a limit that [Table.Check] finds wrong nothing is ever
// admitted.
func (t *Table) For(key Key) Limit {
	l, err := t.Shard.Part(t.whole(key))
	if err != nil {
		return Limit{Concurrency: -1}
	}
	return l
}

// Check returns why the limit of a key cannot be kept; nil if it can.
func (t *Table) Check(key Key) error {
	l, err := t.Shard.Part(t.whole(key))
	if err == nil {
		err = l.Validate()
	}
	return err
}

// whole returns the limit of a key for all shards together.
func (t *Table) whole(key Key) Limit {
	var all Entry // each field as the most exact entry that has it
	t.each(key, func(e Entry) {
		all.Concurrency = all.Concurrency.or(e.Concurrency)
		all.Rate = all.Rate.or(e.Rate)
		all.Burst = all.Burst.or(e.Burst)
	})
	l := Limit{all.Concurrency.Value, all.Rate.Value, all.Burst.Value}
	switch {
	case l.Rate == Rate{}:
		l.Burst = 0
	case l.Burst == 0:
		l.Burst = l.Rate.DefaultBurst()
	}
	return l
}

// or returns f, or g if f says nothing.
func (f Field[T]) or(g Field[T]) Field[T] {
	if f.Set {
		return f
	}
	return g
}

// each calls f with the entries that match key, most exact first.
func (t *Table) each(key Key, f func(Entry)) {
	bare := key
	if key.Kind == Host {
		bare.Name = withoutPort(key.Name)
	}
	for _, name := range slices.Compact([]Key{key, bare}) {
		if e, found := t.exact[name]; found {
			f(e)
		}
	}
	for _, e := range t.wild[key.Kind] {
		suffix := e.Pattern[1:]
		if matches(key.Name, suffix) || matches(bare.Name, suffix) {
			f(e)
		}
	}
}

// matches reports whether "*" and suffix match name; "*" stands for one or
// more characters.
func matches(name, suffix string) bool {
	return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
}

// withoutPort cuts a port off a host key; an IPv6 address keeps its brackets.
func withoutPort(host string) string {
	at := strings.LastIndexByte(host, ':')
	if at < 0 || strings.HasSuffix(host, "]") {
		return host
	}
	return host[:at]
}
