package call

import (
	"slices"
	"sync"
	"time"
)

// idleTimeout is how long an unused connection is kept. It is well below what
// servers grant (5 s is common), so that a request is hardly ever written to a
// connection that the server is closing at that moment.
const idleTimeout = 2 * time.Second

// A pool keeps idle connections. It is safe for concurrent use.
type pool struct {
	max   int // connections
	mu    sync.Mutex
	conns []*conn     // the longest idle first
	sweep *time.Timer // drops the old ones; nil: there are none
}

// take returns the connection that was last used along a route, and nil if there is none
// that is fit for use.
func (p *pool) take(to route) *conn {
	for {
		c := p.last(to)
		if c == nil || time.Since(c.idle) < idleTimeout && quiet(c.socket) {
			return c
		}
		c.Close()
	}
}

func (p *pool) last(to route) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range slices.Backward(p.conns) {
		if c.to == to {
			p.conns = slices.Delete(p.conns, i, i+1)
			c.used = true
			return c
		}
	}
	return nil
}

// put keeps c for a while.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.idle = time.Now()
	p.conns = append(p.conns, c)
	if len(p.conns) > p.max {
		p.drop(1)
	}
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTimeout, p.expire)
	}
}

// expire drops what has been idle for too long.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := slices.IndexFunc(p.conns, func(c *conn) bool { return time.Since(c.idle) < idleTimeout })
	if old < 0 {
		p.drop(len(p.conns))
		p.sweep = nil
		return
	}
	p.drop(old)
	p.sweep.Reset(idleTimeout - time.Since(p.conns[0].idle))
}

// close drops all.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(len(p.conns))
}

// drop closes the n longest idle. The caller holds p.mu.
func (p *pool) drop(n int) {
	for _, c := range p.conns[:n] {
		c.Close()
	}
	p.conns = slices.Delete(p.conns, 0, n)
}
