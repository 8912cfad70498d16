package limits

import (
	"context"
	"os"
)

// Coordinator holds permits, buckets and pauses, and decides who may start. It
// is safe for use by many goroutines.
type Coordinator interface {
	// Sync carries everything a process has to say in one call: releases first,
	// then refunds, withdrawals and pauses, then the claims in their order. The
	// reply's slices are reused: reply must not be nil, and is valid until the
	// next call with it. On error nothing is granted, and everything in the
	// batch must be said again; a [*Conflict] will not go away by itself.
	Sync(ctx context.Context, batch *Batch, reply *Reply) error

	// Changed receives a value, sooner or later, after another process gave
	// back something that a refused claim of this process may have waited for.
	// It is a hint only; nil if nobody shares this coordinator.
	Changed() <-chan struct{}

	// Now reads the clock that the coordinator decides by.
	Now() Time

	// Close gives back whatever the process still holds.
	Close() error
}

// Inheritor is a [Coordinator] that counts a claim for as long as the command that
// was started under it runs, even if this process is killed meanwhile.
type Inheritor interface {
	// Inherit returns a file for the command to inherit, as in
	// [os/exec.Cmd].ExtraFiles; this process closes it once the command has
	// started, or could not be. It is for a claim that is granted, and once only. It
	// waits for other processes only while ctx is not done.
	Inherit(ctx context.Context, id ClaimID) (*os.File, error)
}

// Batch is one call to a [Coordinator]. The zero Batch says nothing.
type Batch struct {
	Releases  []ClaimID      // attempts that have ended: their permits come back
	Refunds   []ClaimID      // granted, never started: permits and tokens come back
	Withdrawn []ClaimID      // refused or not answered before, and wait no longer
	Pauses    []PauseRequest // what services asked for
	Max       int            // grant at most so many claims: the free global slots
	Claims    []Claim        // best rank first
}

// PauseRequest asks that a key admit nothing before Until. Of several pauses
// the longest wins.
type PauseRequest struct {
	Key   Key
	Until Time
}

// ClaimID names one claim of one process for as long as the process lives. It
// is above zero, and never used again after its claim was released, refunded or
// withdrawn.
type ClaimID uint64

// Claim asks that one attempt may start: it gets all its permits and all its
// tokens, or none of them. A claim that was refused waits with the coordinator,
// which may save tokens or set permits aside for it, until it is granted or
// withdrawn; asking again with the same ID replaces it.
type Claim struct {
	ID    ClaimID
	Needs []Need // in admission order: host, account, pools by name
	Pair  Key    // whose pause also holds the claim; zero if none
	Rank  Rank
	// Behind is 1 + the index of the claim of the same lane in front of it in
	// the batch: if that one is refused, so is this, with the same verdict, and
	// nobody knows it as waiting. 0 for the head of a lane.
	Behind int
}

// Need is what a claim takes from one key: one permit, and Cost tokens of its
// bucket, 0 ≤ Cost ≤ Limit.Burst. Every claim on a key states the same Limit.
type Need struct {
	Key   Key
	Limit Limit
	Cost  int64
}

// Rank orders waiting claims: higher priority, then the earlier deadline, then
// the lane that waited longest, then the lower sequence number.
type Rank struct {
	Priority int64
	Deadline Time // Never if none
	Since    Time // when the claim's lane last started a job, or came to be
	Seq      int64
}

// Before reports whether r goes before other.
func (r Rank) Before(other Rank) bool {
	switch {
	case r.Priority != other.Priority:
		return r.Priority > other.Priority
	case r.Deadline != other.Deadline:
		return r.Deadline < other.Deadline
	case r.Since != other.Since:
		return r.Since < other.Since
	}
	return r.Seq < other.Seq
}

// Cause says what a claim waits for.
type Cause uint8

// The causes of a wait that coordinators report.
const (
	Granted Cause = iota // none: the claim was granted
	Permit               // a key has no permit free
	Tokens               // a bucket has too few tokens, or saves them
	Paused               // a service asked for a pause
	TooLate              // the deadline has passed: the claim is never granted
)

// Verdict answers one claim. If Cause is Granted the claim holds its permits
// and has paid its tokens since the reply's Now. Otherwise it holds nothing,
// and Key is the first that blocks it in admission order (Global if Max was
// used up).
type Verdict struct {
	Cause Cause
	Key   Key
	// At is the earliest moment worth asking again: when pauses and buckets, and
	// what buckets save, would allow it. Zero if only permits are missing: that
	// depends on when others give them back.
	At Time
}

// Reply answers a [Batch]. Its slices are reused by the next Sync with it.
type Reply struct {
	Now      Time      // the moment of every decision in the batch
	Verdicts []Verdict // one per claim, in the claims' order
	Levels   []Level   // buckets and pauses of the keys the batch touched
	// Until is when others may have what was granted, if the coordinator hears nothing
	// more: what has not begun by then may not begin. Zero: never.
	Until Time
}

// Level is what a key's bucket and pause stood at when the batch was decided.
type Level struct {
	Key    Key
	Bucket Bucket
	Pause  Time // zero if none was ever asked for
	// Ahead is how many of the next tokens go to claims of other processes that go
	// before the best-ranked of this one, as long as they wait.
	Ahead int64
}

// Turn returns the earliest moment at which the bucket will have given cost tokens
// to this process and Ahead tokens to others; or to ask whether they still wait.
func (l Level) Turn(limit Limit, cost int64) Time {
	return min(l.Bucket.owing(limit, l.Ahead).Ready(limit, cost), l.Bucket.Last+near)
}

// Lost is the error of a coordinator that cannot be reached. What the process holds
// stays its own until the lease ends; then others may have it too.
type Lost struct {
	Until Time // the end of the lease, by the coordinator's clock
	Err   error
}

func (l *Lost) Error() string { return "coordinator lost: " + l.Err.Error() }

// Unwrap returns why.
func (l *Lost) Unwrap() error { return l.Err }
