package limits

import (
	"cmp"
	"fmt"
	"slices"
)

// This file has what holds between members, the processes that share a [State].
// Within a member rank decides. Between members the longest-waiting head goes
// first, whatever priorities and deadlines its process gave it: of each member
// the best-ranked claim that waits for a key is known there, and
//
//   - a bucket saves for the first of them, as it does within a member;
//   - a claim leaves permits to those of other members that go before it and
//     want nothing else;
//   - those that are passed all the same, because they want more, have permits
//     set aside after patience passes, as within a member.
//
// A claim whose member does not come for what is kept for it, within grace of
// the time when it should have asked again, counts no longer: a process may be
// stopped, dead or too busy.
//
// No cycle of waits: a claim that waits for a better-ranked one of its member
// has no earlier turn than that one, and between members only an earlier turn
// counts.

// In microseconds: grace is how long something is kept for a claim that could have
// it, so members must look within less than that even if no wake-up comes; away is
// how long a member that waits for permits may say nothing at all.
const (
	grace Time = 300_000
	away  Time = 1_000_000
	// near is how long at most a member waits for its turn at a bucket before it asks
	// again: those in front may leave, or something else may keep them.
	near Time = 100_000
)

// member is one process, and what it holds and waits for.
type member struct {
	name   string
	claims map[ClaimID]*claim // granted and waiting
}

func (s *State) member(name string) *member {
	if s.last != nil && s.last.name == name {
		return s.last
	}
	m := s.members[name]
	if m == nil {
		if s.members == nil {
			s.members = make(map[string]*member)
		}
		m = &member{name, make(map[ClaimID]*claim)}
		s.members[name] = m
	}
	s.last = m
	return m
}

// shared reports whether there is more than one member.
func (s *State) shared() bool { return len(s.members) > 1 }

// Leave gives back all that a member holds, without its tokens, and forgets what
// it waits for.
func (s *State) Leave(name string, now Time) {
	s.begin()
	m := s.members[name]
	if m == nil {
		return
	}
	for _, c := range m.claims {
		if c.granted {
			s.giveBack(c, now, false)
		} else {
			c.leave()
			s.forget(c)
		}
	}
	s.wake(m, now, true)
	delete(s.members, name)
	s.last = nil
}

// Wakes returns the members that the last step left something for which they
// wait, and that should ask again. The slice is valid until the next step.
func (s *State) Wakes() []string { return s.wakes }

// wake finds out who is to be woken after a step of m: of each key's heads as many
// as it has permits free. Whoever cannot use a permit asks all the same, and so
// passes it on. A member without room has no use for one, and asks again when it
// has room.
func (s *State) wake(m *member, now Time, room bool) {
	for _, c := range m.claims {
		switch {
		case c.cause != Permit || c.due <= now:
		case room:
			c.due = now + away
		default:
			c.due = now - grace - 1
		}
	}
	for _, k := range append(s.freed, s.touched...) {
		free := k.limit.Concurrency - k.inUse
		for _, w := range k.passed {
			if w.due <= now && w.member != m && !w.silent(now) {
				free-- // it was woken
			}
		}
		for ; free > 0; free-- {
			w := k.passed.next(m, now)
			if w == nil {
				break
			}
			w.due = now
			if !slices.Contains(s.wakes, w.member.name) {
				s.wakes = append(s.wakes, w.member.name)
			}
		}
	}
}

// aheadOf is [keyState.ahead] of the claim that the bucket saves for m's sake, if any.
func (k *keyState) aheadOf(m *member, now Time) int64 {
	if at, known := k.saver.of(m); known {
		return k.ahead(k.saver[at], now)
	}
	return 0
}

// next returns the first in order that is not m's and was not woken; nil if there
// is none.
func (h heads) next(m *member, now Time) (first *claim) {
	for _, w := range h {
		if w.due > now && w.member != m && (first == nil || w.before(first)) {
			first = w
		}
	}
	return first
}

// before reports whether c goes before d, which waits too.
func (c *claim) before(d *claim) bool {
	if c.member == d.member {
		return c.rank.Before(d.rank)
	}
	return cmp.Or(cmp.Compare(c.turn(), d.turn()), cmp.Compare(c.member.name, d.member.name)) < 0
}

// turn returns since when a claim has waited, as other members see it: no earlier
// than what it waits for within its own.
func (c *claim) turn() Time {
	t := c.rank.Since
	for _, n := range c.needs {
		if a := n.aside; a != nil && a.member == c.member && a.rank.Before(c.rank) {
			t = max(t, a.turn())
		}
		if at, known := n.saver.of(c.member); known && n.saver[at].rank.Before(c.rank) {
			t = max(t, n.saver[at].turn())
		}
	}
	return t
}

// silent reports whether the claim's member has not come for it in time.
func (c *claim) silent(now Time) bool { return c.due < now-grace }

// countsAgainst reports whether d leaves to c, which waits, what is kept for it.
func (c *claim) countsAgainst(d *claim, now Time) bool {
	return c.before(d) && (c.member == d.member || !c.silent(now))
}

// wantsOnly reports whether a permit of k is all that keeps the claim.
func (c *claim) wantsOnly(k *keyState, now Time) bool {
	if until, _ := c.paused(); until > now {
		return false
	}
	for _, n := range c.needs {
		if n.keyState != k && n.limit.Concurrency > 0 && n.inUse >= n.limit.Concurrency {
			return false
		}
		if n.hasCost() {
			if n.refill(now); n.bucket.Ready(n.limit, n.cost) > now {
				return false
			}
		}
	}
	return true
}

// heads are waiting claims, at most one of each member, in the order of their
// members' names.
type heads []*claim

// of returns where the member's claim is, or would be.
func (h heads) of(m *member) (at int, known bool) {
	for at < len(h) && h[at].member.name < m.name {
		at++
	}
	return at, at < len(h) && h[at].member == m
}

// put makes c its member's claim.
func (h *heads) put(c *claim) {
	if at, known := h.of(c.member); known {
		(*h)[at] = c
	} else {
		*h = slices.Insert(*h, at, c)
	}
}

// drop takes c out if it is its member's claim.
func (h *heads) drop(c *claim) {
	if at := slices.Index(*h, c); at >= 0 {
		*h = slices.Delete(*h, at, at+1)
	}
}

// Conflict is the error of a claim that states another limit for a key than a
// member that uses the key now.
type Conflict struct {
	Key    Key
	Member string
	Theirs Limit // as the member has it
	Asked  Limit
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("%s: %s here, but %s at %s, which runs now", c.Key, c.Asked, c.Theirs, c.Member)
}

// conflict returns a [*Conflict] if a claim of m states another limit for a key
// than other members do, and nil if none does.
func (s *State) conflict(m *member, claims []Claim) error {
	for i := range claims {
		for _, n := range claims[i].Needs {
			if k := s.keys[n.Key]; k != nil && k.limit != n.Limit && k.claims > 0 {
				if other := s.userOf(k, m); other != "" {
					return &Conflict{n.Key, other, k.limit, n.Limit}
				}
			}
		}
	}
	return nil
}

// userOf returns the name of a member that has claims on the key; m does not
// count.
func (s *State) userOf(k *keyState, m *member) (name string) {
	for _, other := range s.members {
		for _, c := range other.claims {
			on := slices.ContainsFunc(c.needs, func(n need) bool { return n.keyState == k })
			if other != m && on && (name == "" || other.name < name) {
				name = other.name
			}
		}
	}
	return name
}
