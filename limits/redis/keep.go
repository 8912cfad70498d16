package redis

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// poll is how often a member that waits looks by itself, should it not be woken. The
// rule wants a look within 300 ms.
const poll = 200 * time.Millisecond

// keep keeps the lease, and says when asking again may help, until the Redis is closed.
func (r *Redis) keep(wakes *redis.PubSub) {
	defer func() { _ = wakes.Close() }()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-r.closed; cancel() }()
	for messages := wakes.Channel(); ; {
		select {
		case <-r.closed:
			return
		case <-messages:
			r.signal()
		case <-ticker.C:
			r.tick(ctx)
		}
	}
}

// tick renews the lease if it is time, and looks for what no wake-up came for. While
// somebody else speaks to Redis there is no need.
func (r *Redis) tick(ctx context.Context) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	default:
		return
	}
	waits := len(r.waiting) > 0
	if beat := r.timing.ttl / 4; time.Since(r.heard) >= beat {
		lost := r.lost
		if lost && rand.IntN(4) > 0 { // not all at once when it is back
			return
		}
		_, err := r.speak(ctx, &request{Op: "beat"})
		waits = err == nil && (waits || lost)
	}
	if waits {
		r.signal()
	}
}

func (r *Redis) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
