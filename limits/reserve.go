package limits

// This file decides one claim: whether it may start, what the reserves keep from
// it, and what it is to be known for if it has to wait.

// blocked says what keeps the claim from starting now (Granted if nothing does), and
// before when no start is possible, even if nobody else took a token from now on.
func (c *claim) blocked(now Time) (v Verdict, earliest Time) {
	earliest = now
	block := func(cause Cause, key Key, at Time) {
		if v.Cause == Granted {
			v.Cause, v.Key = cause, key
		}
		v.At = max(v.At, at)
	}
	if now > c.rank.Deadline {
		block(TooLate, Key{}, 0)
		return v, now
	}
	if until, key := c.paused(); until > now {
		block(Paused, key, until)
		earliest = until
	}
	for _, n := range c.needs {
		if !n.permitFor(c, now) {
			block(Permit, n.key, 0)
		}
	}
	for _, n := range c.needs {
		if !n.hasCost() {
			continue
		}
		earliest = max(earliest, n.bucket.Ready(n.limit, n.cost))
		if ready := n.readyFor(c, now); ready > now {
			block(Tokens, n.key, max(ready, Level{Bucket: n.bucket, Ahead: n.ahead(c, now)}.Turn(n.limit, n.cost)))
		}
	}
	return v, earliest
}

// paused returns the longest pause of the claim's keys and its key.
func (c *claim) paused() (until Time, key Key) {
	if c.pairKey != nil {
		until, key = c.pairKey.pause, c.pairKey.key
	}
	for _, n := range c.needs {
		if n.pause > until {
			until, key = n.pause, n.key
		}
	}
	return until, key
}

// permitFor reports whether the key has a permit that c may take.
func (k *keyState) permitFor(c *claim, now Time) bool {
	if k.limit.Concurrency == 0 {
		return true
	}
	free := k.limit.Concurrency - k.inUse
	if k.aside != nil && k.aside.countsAgainst(c, now) {
		free--
	}
	for _, w := range k.passed {
		if free > 0 && w.member != c.member && w != k.aside && w.countsAgainst(c, now) && w.wantsOnly(k, now) {
			free--
		}
	}
	return free > 0
}

// permitted reports whether every key has a permit that c may take.
func (c *claim) permitted(now Time) bool {
	for _, n := range c.needs {
		if !n.permitFor(c, now) {
			return false
		}
	}
	return true
}

// hasCost reports whether tokens of the key's bucket are needed.
func (n need) hasCost() bool { return n.limit.Rate.Per > 0 && n.cost > 0 }

// readyFor returns when the bucket lets c have its tokens, as far as can be told
// now: what it saves for a better-ranked claim is left alone, unless it refills
// by the time that claim can start. When that is depends on what the other buckets
// save for claims better-ranked still, so this and otherwiseReady call each other,
// and end at the best-ranked.
func (n need) readyFor(c *claim, now Time) Time {
	ready := n.bucket.Ready(n.limit, n.cost)
	if len(n.saver) == 0 || ready == Never {
		return ready
	}
	s := n.savesFor(c, now)
	if s == nil {
		return ready
	}
	cost := s.costAt(n.keyState)
	start := s.otherwiseReady(n.keyState, now)
	begins := max(start, n.bucket.Ready(n.limit, cost))
	if begins > s.rank.Deadline || begins == Never {
		return ready // it is late whatever is saved
	}
	if n.bucket.after(n.limit, ready, n.cost).Ready(n.limit, cost) <= start {
		return ready // the bucket refills by then
	}
	after := n.bucket.after(n.limit, begins, cost)
	// Or before, if s does not start as soon as it may.
	return min(after.Ready(n.limit, n.cost), n.bucket.Ready(n.limit, cost+n.cost))
}

// savesFor returns the best-ranked claim that the bucket saves for and that goes
// before c; nil if there is none.
func (n need) savesFor(c *claim, now Time) (best *claim) {
	for _, s := range n.saver {
		if s != c && s.countsAgainst(c, now) && s.permitted(now) && (best == nil || s.before(best)) {
			best = s
		}
	}
	return best
}

// otherwiseReady returns when all but the bucket of k would let c start.
func (c *claim) otherwiseReady(k *keyState, now Time) Time {
	at, _ := c.paused()
	at = max(at, now)
	for _, n := range c.needs {
		if n.keyState != k && n.hasCost() {
			n.refill(now)
			at = max(at, n.readyFor(c, now))
		}
	}
	return at
}

// ahead returns how many of the bucket's next tokens go to claims of other members that
// go before c, where only time can keep them. They may leave, so nothing is refused for
// their sake: it tells c when its turn is.
func (k *keyState) ahead(c *claim, now Time) (cost int64) {
	for _, w := range k.saver {
		if w.member != c.member && w.countsAgainst(c, now) && w.limitedOnlyBy(k) {
			cost += w.costAt(k)
		}
	}
	return cost
}

// limitedOnlyBy reports whether the bucket of k is the only limit of the claim's keys.
func (c *claim) limitedOnlyBy(k *keyState) bool {
	for _, n := range c.needs {
		if n.limit.Concurrency > 0 || n.keyState != k && n.limit.Rate.Per > 0 {
			return false
		}
	}
	return true
}

// costAt returns how many tokens of k's bucket the claim needs.
func (c *claim) costAt(k *keyState) int64 {
	for _, n := range c.needs {
		if n.keyState == k {
			return n.cost
		}
	}
	return 0
}

// take grants the claim, and counts it against those it passes.
func (c *claim) take(now Time) {
	c.leave()
	c.granted = true
	for _, n := range c.needs {
		n.inUse++
		if n.limit.Rate.Per > 0 {
			n.bucket.Take(n.limit, n.cost)
		}
		for _, w := range n.passed {
			if !w.countsAgainst(c, now) {
				continue
			}
			if w.bypassed++; w.bypassed >= patience {
				w.setAside(now)
			}
		}
	}
}

// setAside reserves a permit of each of the claim's keys where none is.
func (c *claim) setAside(now Time) {
	for _, n := range c.needs {
		if n.aside == nil || n.aside.member != c.member && n.aside.silent(now) {
			n.aside = c
		}
	}
}

// wait notes a refused claim where it is best-ranked: with the key whose
// permits block it, or, if only time does, with each bucket it needs.
func (c *claim) wait(v Verdict, earliest Time, k *keyState, now Time) {
	if c.cause, c.due = v.Cause, v.At; v.Cause == Permit {
		c.due = now + away
		if at, known := k.passed.of(c.member); !known || c.rank.Before(k.passed[at].rank) {
			k.passed.put(c)
		}
		return
	}
	if earliest > c.rank.Deadline || !c.permitted(now) {
		return
	}
	for _, n := range c.needs {
		if !n.hasCost() {
			continue
		}
		if at, known := n.saver.of(c.member); !known || c.rank.Before(n.saver[at].rank) || !n.saver[at].permitted(now) {
			n.saver.put(c)
		}
	}
}

// dropNeeds lets go of the claim's keys.
func (c *claim) dropNeeds() {
	for _, n := range c.needs {
		n.claims--
	}
	c.needs = c.needs[:0]
}

// leaveQueues takes the claim off the keys that know it as their best-ranked.
func (c *claim) leaveQueues() {
	for _, n := range c.needs {
		if len(n.passed)+len(n.saver) > 0 { // which is rare
			n.passed.drop(c)
			n.saver.drop(c)
		}
	}
}

// leave takes the claim off its keys, what was set aside for it too.
func (c *claim) leave() {
	c.leaveQueues()
	for _, n := range c.needs {
		if n.aside == c {
			n.aside = nil
		}
	}
}
