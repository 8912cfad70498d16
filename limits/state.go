package limits

// State is the one decision: given a time and claims in order, who may start
// now. It has no clock and no goroutine, and is not safe for use by several
// goroutines at once; see [Local]. The zero State is ready for use. It decides
// for any number of members, processes that share the keys; member.go has what
// holds between them.
//
// A claim is granted if each of its keys has a permit free and is not paused,
// and each bucket holds its cost; then all of it is taken in one step. Three
// reserves keep a claim from being passed for ever. The first, that nobody
// passes the head of a lane, is the caller's (see [Claim.Behind]). The other
// two are decided here:
//
//   - A bucket saves for the best-ranked claim that only time keeps from
//     starting: a claim of lower rank may take c only if
//     level − c + r·(t* − now) still reaches that claim's cost, t* being when
//     its other buckets and its pauses allow it.
//   - When patience claims of lower rank have been granted on the key that a
//     waiting claim is blocked by, one permit of each of its keys is set aside
//     for it: claims of lower rank leave one permit free there. A key has at
//     most one permit set aside, for the claim that asked first. The waiting
//     claim still holds nothing, so there is no cycle of waits.
//
// A claim that waits for tokens is told when its turn is, after those of other members
// that go before it, and asks again by then.
//
// Invariants: inUse is the number of granted claims that need the key; a
// refused claim has changed no permit and no token; a key is dropped only when
// it is as a new one would be.
type State struct {
	// Empty is when buckets were empty of which nothing else is known; zero: they
	// are full.
	Empty Time

	keys    map[Key]*keyState
	members map[string]*member
	last    *member     // that said something
	paired  bool        // a pair was paused once
	spare   []*claim    // for reuse, so that a grant allocates nothing
	touched []*keyState // by the batch under way, each once
	freed   []*keyState // that a claim of several members has let go of
	wakes   []string    // see [State.Wakes]
	batch   uint64      // number of the one under way
	sweepAt int         // keys to have before the idle ones are looked for
}

// manyKeys is how many keys are kept before idle ones are dropped.
const manyKeys = 1024

// patience is how many claims of lower rank may pass a waiting one before a
// permit of each of its keys is set aside for it.
const patience = 64

// claim is a [Claim] that was granted or waits.
type claim struct {
	id       ClaimID
	member   *member
	needs    []need
	pair     Key       // zero if none
	pairKey  *keyState // nil as long as nobody asked for a pause of the pair
	rank     Rank
	granted  bool
	cause    Cause // of its wait
	bypassed int
	due      Time // when its member should ask again; see [claim.silent]
}

type need struct {
	*keyState
	cost int64
}

// Sync decides one batch at now and fills reply, as [Coordinator.Sync] says. It
// is for a State with one member.
func (s *State) Sync(now Time, batch *Batch, reply *Reply) {
	_ = s.SyncMember("", now, batch, reply) // there is nobody to disagree with
}

// SyncMember is [State.Sync] for one of several members. The error is a
// [*Conflict]; nothing has changed then.
func (s *State) SyncMember(name string, now Time, batch *Batch, reply *Reply) error {
	m := s.member(name)
	if s.shared() {
		if err := s.conflict(m, batch.Claims); err != nil {
			return err
		}
	}
	s.begin()
	s.news(m, now, batch)
	reply.Now, reply.Verdicts, reply.Levels = now, reply.Verdicts[:0], reply.Levels[:0]
	free := batch.Max
	for i := range batch.Claims {
		v := s.answer(m, &batch.Claims[i], reply.Verdicts, now, free > 0)
		if v.Cause == Granted {
			free--
		}
		reply.Verdicts = append(reply.Verdicts, v)
	}
	for _, k := range s.touched {
		if k.limit.Rate.Per > 0 || k.pause > 0 {
			reply.Levels = append(reply.Levels, Level{k.key, k.bucket, k.pause, k.aheadOf(m, now)})
		}
	}
	if s.shared() {
		s.wake(m, now, free > 0)
	}
	if len(s.keys) > max(s.sweepAt, manyKeys) {
		s.sweep(now)
		s.sweepAt = 2 * len(s.keys)
	}
	return nil
}

// begin starts a step.
func (s *State) begin() {
	s.batch++
	s.touched, s.freed, s.wakes = s.touched[:0], s.freed[:0], s.wakes[:0]
}

// news takes all of a batch but its claims.
func (s *State) news(m *member, now Time, batch *Batch) {
	for _, id := range batch.Releases {
		s.giveBack(m.claims[id], now, false)
	}
	for _, id := range batch.Refunds {
		s.giveBack(m.claims[id], now, true)
	}
	for _, id := range batch.Withdrawn {
		s.giveBack(m.claims[id], now, true) // granted, in a reply that was lost
		if c := m.claims[id]; c != nil {
			c.leave()
			s.forget(c)
		}
	}
	for _, p := range batch.Pauses {
		s.pause(p, now)
	}
}

// answer decides one claim; before holds the verdicts of those in front of it.
// One that was granted already, to a batch whose reply was lost, still is.
func (s *State) answer(m *member, asked *Claim, before []Verdict, now Time, free bool) Verdict {
	if asked.Behind > 0 && before[asked.Behind-1].Cause != Granted {
		return before[asked.Behind-1]
	}
	c := s.enter(m, asked, now)
	if c.granted {
		return Verdict{}
	}
	v, earliest := c.blocked(now)
	if v.Cause == Granted && !free {
		v.Cause = Permit
	}
	if v.Cause == Granted {
		c.take(now)
	} else if v.Key != (Key{}) {
		c.wait(v, earliest, s.keys[v.Key], now)
	}
	return v
}

// enter returns the claim as the state keeps it, its keys refilled.
func (s *State) enter(m *member, asked *Claim, now Time) *claim {
	c := m.claims[asked.ID]
	switch {
	case c == nil:
		c = s.newClaim(m, asked.ID)
	case c.granted:
		return c
	default:
		c.leaveQueues()
		c.dropNeeds()
	}
	c.rank, c.cause, c.pair, c.pairKey = asked.Rank, Granted, asked.Pair, nil
	if c.pair.Kind == Pair && s.paired {
		if c.pairKey = s.keys[c.pair]; c.pairKey != nil {
			s.report(c.pairKey)
		}
	}
	for _, n := range asked.Needs {
		k := s.touch(n.Key, now)
		if k.limit != n.Limit {
			s.adopt(k, n.Limit, now)
		}
		k.claims++
		c.needs = append(c.needs, need{k, n.Cost})
	}
	return c
}

// newClaim returns a claim without needs.
func (s *State) newClaim(m *member, id ClaimID) *claim {
	var c *claim
	if last := len(s.spare) - 1; last >= 0 {
		c, s.spare = s.spare[last], s.spare[:last]
	} else {
		c = new(claim)
	}
	c.id, c.member = id, m
	m.claims[id] = c
	return c
}

// giveBack ends a granted claim: its permits come back, with refund its tokens
// too. One that holds nothing changes nothing, so nothing comes back twice.
func (s *State) giveBack(c *claim, now Time, refund bool) {
	if c == nil || !c.granted {
		return
	}
	for _, n := range c.needs {
		n.inUse--
		if refund && n.limit.Rate.Per > 0 {
			n.refill(now)
			n.bucket.Refund(n.limit, n.cost)
			s.report(n.keyState)
		}
	}
	s.forget(c)
}

// forget ends a claim that is on no key any more.
func (s *State) forget(c *claim) {
	delete(c.member.claims, c.id)
	if s.shared() {
		for _, n := range c.needs {
			s.freed = append(s.freed, n.keyState)
		}
	}
	c.dropNeeds()
	*c = claim{needs: c.needs[:0]}
	s.spare = append(s.spare, c)
}
