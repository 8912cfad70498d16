package limits

// This file keeps the state of one key: its numbers, its bucket and its pause.

// keyState is what one key has under way and left.
type keyState struct {
	key    Key
	limit  Limit
	claims int   // that need it, granted or waiting
	inUse  int64 // by those granted
	bucket Bucket
	pause  Time

	passed heads  // best-ranked waiting claims that this key's permits block
	saver  heads  // best-ranked waiting claims that only time keeps from this bucket
	aside  *claim // for which one permit is set aside
	batch  uint64 // that touched it last
}

// touch returns a key's state, refilled, and has the reply tell of it.
func (s *State) touch(key Key, now Time) *keyState {
	k := s.keys[key]
	if k == nil {
		if s.keys == nil {
			s.keys = make(map[Key]*keyState)
		}
		k = &keyState{key: key}
		s.keys[key] = k
	}
	k.refill(now)
	s.report(k)
	return k
}

// adopt gives a key its numbers, or other ones than those who used it before had:
// its bucket keeps its whole tokens, so that new numbers mint nothing.
func (s *State) adopt(k *keyState, limit Limit, now Time) {
	old := k.limit
	k.limit = limit
	switch {
	case old.Rate.Per > 0 && limit.Rate.Per > 0:
		k.bucket.Level = min(k.bucket.Level/old.Rate.Per, limit.Burst) * limit.Rate.Per
	case k.key.Kind == Host && k.pause > 0:
		k.bucket = Bucket{Last: k.pause}
	default:
		k.bucket = s.newBucket(limit, now)
	}
	k.refill(now)
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
	k := s.touch(p.Key, now)
	if p.Until <= max(now, k.pause) {
		return
	}
	if p.Key.Kind == Pair && k.pause == 0 {
		s.paired = true
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
	for _, m := range s.members {
		for _, c := range m.claims {
			if c.pair == k.key {
				c.pairKey = k
			}
		}
	}
}

// sweep drops the keys that are as if nobody had ever used them: a stream may
// name millions.
func (s *State) sweep(now Time) {
	for key, k := range s.keys {
		if k.idle(now) {
			delete(s.keys, key)
		}
	}
}

// idle reports whether the key is as if nobody had ever used it.
func (k *keyState) idle(now Time) bool {
	k.refill(now)
	full := k.limit.Rate.Per == 0 || k.bucket == Full(k.limit, now)
	return k.claims == 0 && k.pause <= now && full
}
