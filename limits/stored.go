package limits

// Stored is what a [State] knows, or a part of it, to be written down and loaded
// by another process. It is JSON as it is.
type Stored struct {
	Empty   Time                     `json:",omitzero"` // [State.Empty]
	Keys    []StoredKey              `json:",omitzero"`
	Members map[string][]StoredClaim `json:",omitzero"`
}

// StoredKey is what is left of one key.
type StoredKey struct {
	Key    Key
	Limit  Limit   `json:",omitzero"`
	Bucket *Bucket `json:",omitzero"` // nil if not known here
	Pause  Time    `json:",omitzero"`
}

// StoredClaim is one claim, granted or waiting.
type StoredClaim struct {
	ID       ClaimID
	Needs    []StoredNeed
	Granted  bool  `json:",omitzero"`
	Pair     Key   `json:",omitzero"`
	Rank     Rank  `json:",omitzero"`
	Cause    Cause `json:",omitzero"`
	Bypassed int   `json:",omitzero"`
	Due      Time  `json:",omitzero"`
}

// StoredNeed is what a claim takes from one key, and what it is known for there.
type StoredNeed struct {
	Key    Key
	Cost   int64 `json:",omitzero"`
	Passed bool  `json:",omitzero"`
	Saver  bool  `json:",omitzero"`
	Aside  bool  `json:",omitzero"`
}

// Held returns the claims that a member was granted, and their keys' limits.
func (s *State) Held(name string) Stored {
	var held Stored
	s.batch++ // so that each key is listed once
	s.touched = s.touched[:0]
	for _, c := range s.member(name).claims {
		if c.granted {
			held.add(c)
			for _, n := range c.needs {
				s.report(n.keyState)
			}
		}
	}
	for _, k := range s.touched {
		held.Keys = append(held.Keys, StoredKey{Key: k.key, Limit: k.limit})
	}
	return held
}

// Shared returns all that is in no [State.Held]: the keys, but for those that are
// as new ones would be, and the waiting claims that anything is kept for.
func (s *State) Shared(now Time) Stored {
	shared := Stored{Empty: s.Empty}
	for _, m := range s.members {
		for _, c := range m.claims {
			if !c.granted && c.known() {
				shared.add(c)
			}
		}
	}
	for _, k := range s.keys {
		if !k.idle(now) {
			shared.Keys = append(shared.Keys, StoredKey{Key: k.key, Limit: k.limit, Bucket: &k.bucket, Pause: k.pause})
		}
	}
	return shared
}

// known reports whether any key knows the claim as waiting.
func (c *claim) known() bool {
	for _, n := range c.needs {
		if need := n.stored(c); need.Passed || need.Saver || need.Aside {
			return true
		}
	}
	return false
}

func (s *Stored) add(c *claim) {
	stored := StoredClaim{ID: c.id, Granted: c.granted}
	for _, n := range c.needs {
		stored.Needs = append(stored.Needs, n.stored(c))
	}
	if !c.granted {
		stored.Pair, stored.Rank, stored.Cause, stored.Bypassed, stored.Due = c.pair, c.rank, c.cause, c.bypassed, c.due
	}
	if s.Members == nil {
		s.Members = make(map[string][]StoredClaim)
	}
	s.Members[c.member.name] = append(s.Members[c.member.name], stored)
}

func (n need) stored(c *claim) StoredNeed {
	is := func(h heads) bool { at, known := h.of(c.member); return known && h[at] == c }
	return StoredNeed{Key: n.key, Cost: n.cost, Passed: is(n.passed), Saver: is(n.saver), Aside: n.aside == c}
}

// Load adds what was stored to the state. What is there already stays: the keys of
// a [State.Shared] are to be loaded first, then every [State.Held], and the claims
// of the Shared last.
func (s *State) Load(stored *Stored, now Time) {
	s.Empty = max(s.Empty, stored.Empty)
	for _, sk := range stored.Keys {
		k := s.touch(sk.Key, now)
		switch {
		case sk.Bucket != nil:
			k.limit, k.bucket, k.pause = sk.Limit, *sk.Bucket, sk.Pause
			s.paired = s.paired || sk.Key.Kind == Pair
		case k.claims == 0 && k.limit != sk.Limit:
			s.adopt(k, sk.Limit, now)
		}
	}
	for name, claims := range stored.Members {
		m := s.member(name)
		for i := range claims {
			if m.claims[claims[i].ID] == nil {
				s.load(m, &claims[i], now)
			}
		}
	}
}

func (s *State) load(m *member, stored *StoredClaim, now Time) {
	c := s.newClaim(m, stored.ID)
	c.granted, c.pair, c.rank, c.cause = stored.Granted, stored.Pair, stored.Rank, stored.Cause
	c.bypassed, c.due = stored.Bypassed, stored.Due
	if c.pair.Kind == Pair {
		c.pairKey = s.keys[c.pair]
	}
	for _, n := range stored.Needs {
		k := s.touch(n.Key, now)
		k.claims++
		if c.granted {
			k.inUse++
		}
		if n.Passed {
			k.passed.put(c)
		}
		if n.Saver {
			k.saver.put(c)
		}
		if n.Aside {
			k.aside = c
		}
		c.needs = append(c.needs, need{k, n.Cost})
	}
}
