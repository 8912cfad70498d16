package redis

import (
	"sync"
	"time"

	"agentlimit/limits"
)

// clock tells what the clock of Redis shows. Each answer was decided between the
// moments at which it was asked for and received, which bounds how far that clock is
// ahead of ours; the lower bound is what counts, so that nobody asks too early.
type clock struct {
	start time.Time

	mu            sync.Mutex
	least, utmost int64 // microseconds from start to Redis's zero; both zero at first
}

// set takes an answer that was decided at now. One that does not fit what was known
// shows that a clock was stepped, or that the two drift.
func (c *clock) set(sent, received time.Time, now limits.Time) {
	least := int64(now) - received.Sub(c.start).Microseconds() - 1
	utmost := int64(now) - sent.Sub(c.start).Microseconds() + 1
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.utmost == 0 || least > c.utmost || utmost < c.least {
		c.least, c.utmost = least, utmost
		return
	}
	c.least, c.utmost = max(c.least, least), min(c.utmost, utmost)
}

func (c *clock) at(t time.Time) limits.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return limits.Time(c.least + t.Sub(c.start).Microseconds())
}
