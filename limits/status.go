package limits

import (
	"cmp"
	"slices"
)

// KeyStatus is what a coordinator knows of one key that is in use, waited for,
// paused or not full.
type KeyStatus struct {
	Key     Key
	Limit   Limit
	InUse   int64
	Bucket  Bucket         // as of the look; zero without a rate
	Pause   Time           // zero if none
	Members []MemberStatus // those that hold or wait, by name
}

// MemberStatus is what one process has to do with one key.
type MemberStatus struct {
	Member string
	InUse  int64
	// Waiting counts the claims that something is kept for: the first in rank, and
	// not those behind it.
	Waiting int64
}

// Status returns what there is to know, ordered by key.
func (s *State) Status(now Time) []KeyStatus {
	of := make(map[*keyState]map[string]*MemberStatus)
	for _, m := range s.members {
		for _, c := range m.claims {
			for _, n := range c.needs {
				if of[n.keyState] == nil {
					of[n.keyState] = make(map[string]*MemberStatus)
				}
				if of[n.keyState][m.name] == nil {
					of[n.keyState][m.name] = &MemberStatus{Member: m.name}
				}
				of[n.keyState][m.name].count(c)
			}
		}
	}
	var all []KeyStatus
	for _, k := range s.keys {
		if k.idle(now) {
			continue
		}
		status := KeyStatus{Key: k.key, Limit: k.limit, InUse: k.inUse}
		if k.pause > now {
			status.Pause = k.pause
		}
		if k.limit.Rate.Per > 0 {
			status.Bucket = k.bucket
		}
		for _, m := range of[k] {
			status.Members = append(status.Members, *m)
		}
		slices.SortFunc(status.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Member, b.Member) })
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b KeyStatus) int { return a.Key.Compare(b.Key) })
	return all
}

func (m *MemberStatus) count(c *claim) {
	if c.granted {
		m.InUse++
	} else {
		m.Waiting++
	}
}
