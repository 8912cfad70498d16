package limits

// Bucket is a token bucket in whole numbers, after the note this project
// follows (see the README): T = min(B, T + r·elapsed), and a cost c is taken
// only if T ≥ c. The level is kept in units of token·Per, in which one
// microsecond adds Rate.Tokens exactly, so that nothing drifts and a refund is
// exact. The zero Bucket is an empty one whose clock starts at zero; see [Full].
//
// A Bucket knows neither its rate nor its capacity: every method takes the
// key's [Limit], whose Rate must not be zero. It is not safe for use by several
// goroutines at once.
type Bucket struct {
	Level int64 // token·Per, 0 ≤ Level ≤ Burst·Per
	Last  Time  // when Level was right
}

// Full returns a bucket that holds all it can at now.
func Full(l Limit, now Time) Bucket { return Bucket{Level: l.Burst * l.Rate.Per, Last: now} }

// Refill brings the level up to now. A clock that stepped back adds nothing; one
// that stepped forward fills the bucket at most.
func (b *Bucket) Refill(l Limit, now Time) {
	elapsed := int64(max(0, now-b.Last))
	b.Last = now
	capacity := l.Burst * l.Rate.Per
	// Comparing before multiplying keeps every product within the capacity.
	if missing := capacity - b.Level; elapsed > missing/l.Rate.Tokens {
		b.Level = capacity
	} else {
		b.Level += elapsed * l.Rate.Tokens
	}
}

// Take pays cost tokens and reports whether the level allowed it; if not,
// nothing is taken. The level must have been refilled.
func (b *Bucket) Take(l Limit, cost int64) bool {
	if b.Level < cost*l.Rate.Per {
		return false
	}
	b.Level -= cost * l.Rate.Per
	return true
}

// Refund puts cost tokens back, at most up to the capacity. The level must have
// been refilled.
func (b *Bucket) Refund(l Limit, cost int64) {
	b.Level = min(l.Burst*l.Rate.Per, b.Level+cost*l.Rate.Per)
}

// after returns the bucket as it is once cost tokens were taken at a later time, all
// that it has then and what it is to earn.
func (b Bucket) after(l Limit, at Time, cost int64) Bucket {
	b.Refill(l, at)
	return b.owing(l, cost)
}

// owing returns the bucket as it is if cost tokens more are taken as soon as they are
// there: its level may be below zero.
func (b Bucket) owing(l Limit, cost int64) Bucket {
	b.Level -= cost * l.Rate.Per
	return b
}

// Ready returns the earliest moment at which cost tokens are there, if nobody
// takes any before: Last if they are there now. A cost above the capacity is
// never ready.
func (b Bucket) Ready(l Limit, cost int64) Time {
	if cost > l.Burst {
		return Never
	}
	missing := cost*l.Rate.Per - b.Level
	if missing <= 0 {
		return b.Last
	}
	return b.Last + Time((missing+l.Rate.Tokens-1)/l.Rate.Tokens)
}
