//go:build linux || darwin

package folder

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agentlimit/limits"
)

// clock is this process's view of the time that all members share.
type clock struct {
	boot    string             // names the time since the machine started last
	elapsed func() limits.Time // since then
	wall    func() limits.Time
	start   *atomic.Int64 // the shared time at which elapsed was zero; 0: not known
}

// anchor ties the shared time to one boot of the machine.
type anchor struct {
	Boot  string
	Start limits.Time // the shared time when the machine started
}

// systemClock reads the kernel's.
func systemClock() (clock, error) {
	boot, err := bootID()
	return clock{
		boot: boot,
		elapsed: func() limits.Time {
			var ts unix.Timespec
			_ = unix.ClockGettime(sinceBoot, &ts) // these systems have it
			return limits.Time(ts.Nano() / 1000)
		},
		wall:  func() limits.Time { return limits.Time(time.Now().UnixMicro()) },
		start: new(atomic.Int64),
	}, err
}

func (c clock) now() limits.Time { return limits.Time(c.start.Load()) + c.elapsed() }

// follow takes over the folder's anchor, and returns it. One of an earlier boot is
// replaced: time goes on by the wall clock, and never before last.
func (c clock) follow(a anchor, last limits.Time) anchor {
	if a.Boot != c.boot || a.Start == 0 {
		a = anchor{c.boot, limits.Time(c.start.Load())}
		if a.Start == 0 {
			a.Start = max(c.wall(), last) - c.elapsed()
		}
	}
	c.start.Store(int64(a.Start))
	return a
}
