package runner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"agentlimit/limits"
)

// This file is about coordinators that cannot be reached. It fails closed: without
// an answer nothing starts. A lost one is asked now and then whether it is back,
// whether or not there is anything to say, and is asked for no start.

// tryAgain is about how long to wait before a lost coordinator is asked again: drawn
// between half and the whole of it, so that many runs do not come back at once.
const tryAgain = time.Second

// errLease is why attempts are cancelled whose permits others may have by now.
var errLease = errors.New("the coordinator was lost for longer than it keeps permits")

// unanswered takes the error of a batch.
func (r *run) unanswered(err error) {
	if r.stopped && r.asks.Err() != nil { // what was to be given back comes back by Close
		r.askAt = limits.Never
		return
	}
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
	r.askAt = r.cfg.Coordinator.Now().Add(tryAgain/2 + rand.N(tryAgain/2))
}

// keepLease ends what runs when others may have its permits by now.
func (r *run) keepLease(now limits.Time) {
	if r.lost == nil || r.cfg.Lost != LostCancel || now < r.lost.Until {
		return
	}
	r.lost.Until = limits.Never // once
	r.cancelCalls(errLease)
	r.fail(fmt.Errorf("ask the coordinator: %w", r.lost))
}

// found notes that the coordinator answers.
func (r *run) found() {
	if r.lost != nil && r.cfg.LostTold != nil {
		r.cfg.LostTold(nil)
	}
	r.lost, r.askAt = nil, 0
}

// beatDue reports whether the coordinator is to be asked though there is nothing to
// say.
func (r *run) beatDue() bool {
	now := r.cfg.Coordinator.Now()
	if r.cfg.Beat == 0 || now < r.beatAt {
		return false
	}
	r.beatAt = now.Add(r.cfg.Beat)
	return true
}

// nextTry returns when the coordinator is to be asked without news, or attempts are
// to be ended; never if that is not to be.
func (r *run) nextTry() limits.Time {
	next := limits.Never
	if r.cfg.Beat > 0 && !r.asking {
		next = max(r.beatAt, r.askAt)
	}
	if r.lost == nil {
		return next
	}
	if !r.asking {
		next = min(next, r.askAt)
	}
	if r.cfg.Lost == LostCancel {
		next = min(next, r.lost.Until)
	}
	return next
}
