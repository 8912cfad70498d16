package schedule

import (
	"slices"

	"agentlimit/limits"
)

// The coordinator saves a bucket's tokens for the best-ranked claim that nothing
// but time keeps from starting. This file keeps track of who that is, so that
// the right lane is made known, and those refused for its sake ask again when it
// goes, loses a permit or is put off by another bucket.

// wouldSave reports whether the coordinator, if it knew of the lane, would save
// tokens of one of its buckets for it, from which others may take some.
func (s *Schedule) wouldSave(l *lane, now limits.Time) bool {
	j := l.jobs.top()
	if now > j.Deadline {
		return false
	}
	if _, late := s.late(j, now); late {
		return false
	}
	for i, k := range l.keys {
		if k.takes(j.cost(i)) && k.saver != l && !k.dry(now) && k.savesRatherFor(l, now) {
			return true
		}
	}
	return false
}

// savesRatherFor reports whether l has a better claim to the bucket than the
// lane it is saved for now.
func (k *key) savesRatherFor(l *lane, now limits.Time) bool {
	return k.saver == nil || l.rank.Before(k.saver.rank) || !k.saver.permitted(now)
}

// permitted reports whether every key may have a permit for the lane.
func (l *lane) permitted(now limits.Time) bool {
	for _, k := range l.keys {
		if !k.permits(l.rank, now) {
			return false
		}
	}
	return true
}

// save notes that the coordinator saves tokens for the lane, where it does.
func (s *Schedule) save(l *lane, now limits.Time) {
	if !l.permitted(now) {
		return
	}
	j := l.jobs.top()
	for i, k := range l.keys {
		if !k.takes(j.cost(i)) || k.saver == l || !k.savesRatherFor(l, now) {
			continue
		}
		if k.saver != nil {
			old := k.saver
			s.stopSaving(k)
			s.notSaver(old)
		}
		k.saver = l
		s.saversChanged(k, l)
		if !l.isSaver {
			l.isSaver = true
			for _, other := range l.keys {
				other.savers = append(other.savers, l)
			}
		}
	}
}

// saveNoMore notes that no bucket is saved for the lane.
func (s *Schedule) saveNoMore(l *lane) {
	if !l.isSaver {
		return
	}
	for _, k := range l.keys {
		if k.saver == l {
			s.stopSaving(k)
		}
	}
	s.notSaver(l)
}

// stopSaving frees the key's tokens for whoever was refused them.
func (s *Schedule) stopSaving(k *key) {
	k.saver = nil
	k.noTokens = refusal{}
	s.offerAll(k)
}

// notSaver takes the lane off its keys' lists if no bucket is saved for it.
func (s *Schedule) notSaver(l *lane) {
	for _, k := range l.keys {
		if k.saver == l {
			return
		}
	}
	l.isSaver = false
	for _, k := range l.keys {
		if i := slices.Index(k.savers, l); i >= 0 {
			k.savers = slices.Delete(k.savers, i, i+1)
		}
	}
}

// saversChanged tells that the key has less to give, because of by: a lane that
// needs it may start later than other buckets save for it, or wait for a permit.
func (s *Schedule) saversChanged(k *key, by *lane) {
	for _, l := range k.savers {
		if l != by {
			s.savedInVain(l)
		}
	}
}

// savedInVain lets those ask again who were refused tokens for the lane's sake.
func (s *Schedule) savedInVain(l *lane) {
	for _, k := range l.keys {
		if k.saver == l && k.noTokens.on {
			k.noTokens = refusal{}
			s.offerAll(k)
		}
	}
}
