package call

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// errClosed ends an attempt whose connection was closed after the request was
// written and before an answer came.
var errClosed = fail(Lost, "lost", "the server closed the connection before it answered")

// A gate stands between one attempt and the connections that net/http finds for
// it. It knows whether anything was written, and keeps net/http from repeating
// by itself a request that was: that would be a second call which no limit has
// admitted. Where nothing was written yet, net/http may try a second connection.
type gate struct {
	before func() error            // called once, before the first byte
	cancel context.CancelCauseFunc // of the request

	mu    sync.Mutex
	bound bool  // net/http has found a connection
	fresh bool  // a new one
	asked bool  // before was called
	conn  *conn // that the request is written to
	wrote bool
	err   error // why nothing more may be written, a failure
}

// trace returns a context in which requests pass through the gate.
func (g *gate) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			g.mu.Lock()
			g.bound, g.fresh = true, !info.Reused
			g.mu.Unlock()
			ours(info.Conn).gate.Store(g)
		},
	})
}

// ours returns the connection of [dial] below c and its layers of TLS.
func ours(c net.Conn) *conn {
	for {
		if inner, ok := c.(*conn); ok {
			return inner
		}
		c = c.(interface{ NetConn() net.Conn }).NetConn()
	}
}

// open is asked before every write to c.
func (g *gate) open(c *conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.err != nil || g.conn == c:
		return g.err
	case g.conn != nil:
		g.err = errClosed
	case !g.asked:
		g.asked = true
		g.err = g.before()
	}
	if g.err != nil {
		g.cancel(g.err)
		return g.err
	}
	g.conn = c
	return nil
}

// written is told after every write. A connection that took nothing leaves the
// way open for another.
func (g *gate) written(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote = g.wrote || n > 0
	if !g.wrote {
		g.conn = nil
	}
}

// fail says what it means that err came instead of an answer, and whether the
// other side may have seen the request. Nothing passes any more.
func (g *gate) fail(ctx context.Context, err error) (sent bool, _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.err != nil:
		err = g.err
	case g.fresh && isAlert(err):
		// In TLS 1.3 the server's word on our certificate comes after we have
		// written, but it has not read that.
		g.wrote, err = false, &failure{Broken, "tls", err}
	case g.bound && !g.wrote && ctx.Err() == nil && !errors.As(err, new(*failure)):
		err = &failure{Refused, "connect", err}
	}
	g.err = err
	return g.wrote, err
}

// A conn is a connection that asks the gate of its present attempt before it
// writes. What is written before the first attempt has it, a TLS handshake or a
// CONNECT to a proxy, passes unasked.
type conn struct {
	net.Conn
	gate atomic.Pointer[gate]
}

func (c *conn) Write(p []byte) (int, error) {
	g := c.gate.Load()
	if g == nil {
		return c.Conn.Write(p)
	}
	if err := g.open(c); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	g.written(n)
	return n, err
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}
