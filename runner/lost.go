package runner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"agentlimit/limits"
)

// This file is about coordinators that cannot be reached. It fails closed: without
// an answer nothing starts.

// tryAgain is about how long to wait before a lost coordinator is asked again: drawn
// between half and the whole of it, so that many runs do not come back at once.
const tryAgain = time.Second

// errLease is why attempts are cancelled whose permits others may have by now.
var errLease = errors.New("the coordinator was lost for longer than it keeps permits")

// unanswered takes the error of a batch.
func (r *run) unanswered(err error) {
	lost, back := errors.AsType[*limits.Lost](err)
	if !back || r.cfg.Lost == LostStop {
		r.askAt = limits.Never
		r.fail(fmt.Errorf("ask the coordinator: %w", err))
		return
	}
	if r.lost == nil && r.cfg.LostTold != nil {
		r.cfg.LostTold(lost.Err)
	}
	r.lost = lost
	now := r.cfg.Coordinator.Now()
	r.askAt = now.Add(tryAgain/2 + rand.N(tryAgain/2))
	if r.cfg.Lost == LostCancel && now >= lost.Until {
		r.cancelCalls(errLease)
		r.fail(fmt.Errorf("ask the coordinator: %w", err))
	}
}

// found notes that the coordinator answers.
func (r *run) found() {
	if r.lost != nil && r.cfg.LostTold != nil {
		r.cfg.LostTold(nil)
	}
	r.lost, r.askAt = nil, 0
}

// nextTry returns when a lost coordinator is to be asked again, or attempts are to
// be ended; never if it is not lost.
func (r *run) nextTry(now limits.Time) limits.Time {
	if r.lost == nil || r.asking {
		return limits.Never
	}
	return max(now, r.askAt)
}
