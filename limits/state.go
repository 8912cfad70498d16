package limits

// State is the one decision: given a time and claims in order, who may start
// now. It has no clock and no goroutine, and is not safe for use by several
// goroutines at once; see [Local]. The zero State is ready for use.
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
// Invariants: inUse is the number of granted claims that need the key; a
// refused claim has changed no permit and no token; a key is dropped only when
// it is as a new one would be.
type State struct {
	// Empty is when buckets were empty of which nothing else is known; zero: they
	// are full.
	Empty Time

	keys    map[Key]*keyState
	claims  map[ClaimID]*claim // granted and waiting
	spare   []*claim           // for reuse, so that a grant allocates nothing
	touched []*keyState        // by the batch under way, each once
	batch   uint64             // its number
	sweepAt int                // keys to have before the idle ones are looked for
}

// manyKeys is how many keys are kept before idle ones are dropped.
const manyKeys = 1024

// patience is how many claims of lower rank may pass a waiting one before a
// permit of each of its keys is set aside for it.
const patience = 64

// keyState is what one key has under way and left.
type keyState struct {
	key    Key
	limit  Limit
	claims int   // that need it, granted or waiting
	inUse  int64 // by those granted
	bucket Bucket
	pause  Time

	passed *claim // best-ranked waiting claim that this key's permits block
	saver  *claim // best-ranked waiting claim that only time keeps from this bucket
	aside  *claim // for which one permit is set aside
	batch  uint64 // that touched it last
}

// claim is a [Claim] that was granted or waits.
type claim struct {
	id       ClaimID
	needs    []need
	pair     Key       // zero if none
	pairKey  *keyState // nil as long as nobody asked for a pause of the pair
	rank     Rank
	granted  bool
	bypassed int
}

type need struct {
	*keyState
	cost int64
}

// Sync decides one batch at now and fills reply, as [Coordinator.Sync] says.
func (s *State) Sync(now Time, batch *Batch, reply *Reply) {
	s.batch++
	s.touched = s.touched[:0]
	for _, id := range batch.Releases {
		s.giveBack(id, now, false)
	}
	for _, id := range batch.Refunds {
		s.giveBack(id, now, true)
	}
	for _, id := range batch.Withdrawn {
		if c := s.claims[id]; c != nil && !c.granted {
			c.leave()
			s.forget(c)
		}
	}
	for _, p := range batch.Pauses {
		s.pause(p, now)
	}
	reply.Now, reply.Verdicts, reply.Levels = now, reply.Verdicts[:0], reply.Levels[:0]
	free := batch.Max
	for i := range batch.Claims {
		v := s.answer(&batch.Claims[i], reply.Verdicts, now, free > 0)
		if v.Cause == Granted {
			free--
		}
		reply.Verdicts = append(reply.Verdicts, v)
	}
	for _, k := range s.touched {
		if k.limit.Rate.Per > 0 || k.pause > 0 {
			reply.Levels = append(reply.Levels, Level{Key: k.key, Bucket: k.bucket, Pause: k.pause})
		}
	}
	if len(s.keys) > max(s.sweepAt, manyKeys) {
		s.sweep(now)
		s.sweepAt = 2 * len(s.keys)
	}
}

// sweep drops the keys that are as if nobody had ever used them: a stream may
// name millions.
func (s *State) sweep(now Time) {
	for key, k := range s.keys {
		k.refill(now)
		full := k.limit.Rate.Per == 0 || k.bucket == Full(k.limit, now)
		if k.claims == 0 && k.pause <= now && full {
			delete(s.keys, key)
		}
	}
}

// answer decides one claim; before holds the verdicts of those in front of it.
func (s *State) answer(asked *Claim, before []Verdict, now Time, free bool) Verdict {
	if asked.Behind > 0 && before[asked.Behind-1].Cause != Granted {
		return before[asked.Behind-1]
	}
	c := s.enter(asked, now)
	v := c.blocked(now)
	if v.Cause == Granted && !free {
		v.Cause = Permit
	}
	if v.Cause == Granted {
		c.take()
	} else if v.Key != (Key{}) {
		c.wait(v, s.keys[v.Key])
	}
	return v
}

// enter returns the claim as the state keeps it, its keys refilled.
func (s *State) enter(asked *Claim, now Time) *claim {
	c := s.claims[asked.ID]
	if c == nil {
		if s.claims == nil {
			s.claims = make(map[ClaimID]*claim)
		}
		if last := len(s.spare) - 1; last >= 0 {
			c, s.spare = s.spare[last], s.spare[:last]
		} else {
			c = new(claim)
		}
		s.claims[asked.ID] = c
	} else {
		c.leaveQueues()
		c.dropNeeds()
	}
	c.id, c.rank, c.needs, c.pair, c.pairKey = asked.ID, asked.Rank, c.needs[:0], asked.Pair, nil
	if c.pair.Kind == Pair {
		if c.pairKey = s.keys[c.pair]; c.pairKey != nil {
			s.report(c.pairKey)
		}
	}
	for _, n := range asked.Needs {
		k := s.touch(n.Key, n.Limit, now)
		k.claims++
		c.needs = append(c.needs, need{k, n.Cost})
	}
	return c
}

// touch returns a key's state, refilled, and has the reply tell of it.
func (s *State) touch(key Key, limit Limit, now Time) *keyState {
	k := s.keys[key]
	if k == nil {
		if s.keys == nil {
			s.keys = make(map[Key]*keyState)
		}
		k = &keyState{key: key}
		s.keys[key] = k
	}
	if k.limit == (Limit{}) && limit != (Limit{}) {
		k.limit = limit
		k.bucket = s.newBucket(limit, now)
		if key.Kind == Host && k.pause > 0 {
			k.bucket = Bucket{Last: k.pause}
		}
	}
	k.refill(now)
	s.report(k)
	return k
}

func (s *State) newBucket(l Limit, now Time) Bucket {
	if s.Empty > 0 {
		return Bucket{Last: min(s.Empty, now)}
	}
	return Full(l, now)
}

// report has the batch's reply tell of the key.
func (s *State) report(k *keyState) {
	if k.batch != s.batch {
		k.batch = s.batch
		s.touched = append(s.touched, k)
	}
}

// refill brings the bucket up to now; one that a pause emptied stays empty
// until the pause ends.
func (k *keyState) refill(now Time) {
	if k.limit.Rate.Per > 0 && now >= min(k.pause, k.bucket.Last) {
		k.bucket.Refill(k.limit, now)
	}
}

// pause makes the longer of two pauses hold. A host's pause empties its bucket,
// which refills from the pause's end, so that no burst follows it.
func (s *State) pause(p PauseRequest, now Time) {
	k := s.touch(p.Key, Limit{}, now)
	if p.Until <= max(now, k.pause) {
		return
	}
	if p.Key.Kind == Pair && k.pause == 0 {
		s.showPair(k)
	}
	k.pause = p.Until
	if p.Key.Kind == Host {
		k.bucket = Bucket{Last: p.Until}
	}
}

// showPair makes a pair's first pause known to the claims of that pair. Pairs
// have a state only once they were paused: there may be a million of them.
func (s *State) showPair(k *keyState) {
	for _, c := range s.claims {
		if c.pair == k.key {
			c.pairKey = k
		}
	}
}

// giveBack ends a granted claim: its permits come back, with refund its tokens
// too. One that holds nothing changes nothing, so nothing comes back twice.
func (s *State) giveBack(id ClaimID, now Time, refund bool) {
	c := s.claims[id]
	if c == nil || !c.granted {
		return
	}
	for _, n := range c.needs {
		n.inUse--
		if refund && n.limit.Rate.Per > 0 {
			n.refill(now)
			n.bucket.Refund(n.limit, n.cost)
		}
	}
	s.forget(c)
}

// forget ends a claim that is on no key any more.
func (s *State) forget(c *claim) {
	delete(s.claims, c.id)
	c.dropNeeds()
	*c = claim{needs: c.needs[:0]}
	s.spare = append(s.spare, c)
}
