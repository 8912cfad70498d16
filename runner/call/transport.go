package call

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"agentlimit/jobspec"
)

// idleTimeout is how long an unused connection is kept. It is well below what
// servers grant (5 s is common), so that a request is hardly ever written to a
// connection that the server is closing at that moment.
const idleTimeout = 2 * time.Second

// transportKey is what makes connections unfit for each other's requests.
type transportKey struct {
	proxy string
	tls   jobspec.TLS
}

// transport returns the transport for h's settings. Its files are read when they
// are first needed.
func (c *Client) transport(h *jobspec.HTTP) (*http.Transport, error) {
	key := transportKey{h.Proxy, h.TLS}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.transports[key]; ok {
		return t, nil
	}
	t, err := newTransport(key, c.cfg.Concurrency)
	if err != nil {
		return nil, err
	}
	c.transports[key] = t
	return t, nil
}

// newTransport returns a transport that sets no limits and no times of its own,
// since the job has them. With a DialContext of ours it speaks HTTP/1.1 alone: one
// request a connection, so that ending an attempt is seen by the server, and no
// request waits for a stream within an attempt that holds permits.
func newTransport(key transportKey, concurrency int) (*http.Transport, error) {
	proxy := http.ProxyFromEnvironment
	if key.proxy != "" {
		u, err := url.Parse(key.proxy)
		if err != nil { // which quotes the URL, and so the password in it
			return nil, fail(Broken, "proxy", "proxy: not a valid URL")
		}
		proxy = http.ProxyURL(u)
	}
	settings, err := tlsConfig(key.tls)
	if err != nil {
		return nil, cannot("tls", "read TLS settings", err)
	}
	return &http.Transport{
		Proxy:                  proxy,
		OnProxyConnectResponse: checkProxy,
		DialContext:            dial,
		TLSClientConfig:        settings,
		DisableCompression:     true,
		MaxIdleConns:           concurrency,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: 1 << 20,
	}, nil
}

// checkProxy refuses a tunnel that the proxy did not open. A proxy in trouble is
// like a server that refuses the connection.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return fail(Refused, "connect", "proxy: %s", resp.Status)
	}
	return fail(Broken, "proxy", "proxy: %s", resp.Status)
}

func tlsConfig(s jobspec.TLS) (*tls.Config, error) {
	cfg := &tls.Config{InsecureSkipVerify: s.Insecure}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate in " + s.CAFile)
		}
	}
	if s.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// errClosed ends an attempt whose connection was closed after the request was
// written and before an answer came.
var errClosed = fail(Lost, "lost", "the server closed the connection before it answered")

// A gate stands between one attempt and the connections that net/http finds for
// it, one after another. It knows whether anything was written, and keeps net/http
// from repeating by itself a request that was: that would be a second call which
// no limit has admitted. Where nothing was written yet, net/http may try another
// connection. Only the goroutine that makes the request uses it.
type gate struct {
	t     *attempt
	conn  *conn // the present connection; nil: none yet
	mark  int64 // what conn had taken before
	fresh bool  // conn is new
	err   error // why nothing more may be written, a failure
}

// trace returns a context in which requests pass through the gate.
func (g *gate) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if err := g.pass(ours(info.Conn), !info.Reused); err != nil {
			g.t.cancel(err)
			info.Conn.Close() // else net/http would write to it all the same
		}
	}})
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

// pass is asked before the request is written to c. An error is for good.
func (g *gate) pass(c *conn, fresh bool) error {
	switch {
	case g.err != nil:
	case g.wrote():
		g.err = errClosed
	case g.conn == nil:
		g.err = g.t.sending()
	}
	if g.err == nil {
		g.conn, g.mark, g.fresh = c, c.taken.Load(), fresh
	}
	return g.err
}

func (g *gate) wrote() bool { return g.conn != nil && g.conn.taken.Load() > g.mark }

// fail says what it means that err came instead of an answer, and whether the
// other side may have seen the request. When net/http returns an error, it writes
// no more.
func (g *gate) fail(ctx context.Context, err error) (sent bool, _ error) {
	switch {
	case g.err != nil:
		return g.wrote(), g.err
	case g.fresh && isAlert(err):
		// In TLS 1.3 the server's word on our certificate comes after we have
		// written, but it has not read that.
		return false, &failure{Broken, "tls", err}
	case g.conn != nil && !g.wrote() && ctx.Err() == nil && !errors.As(err, new(*failure)):
		return false, &failure{Refused, "connect", err}
	}
	return g.wrote(), err
}

// A conn is a connection that counts the bytes it has taken, those of a TLS
// handshake or of a CONNECT to a proxy too.
type conn struct {
	net.Conn
	taken atomic.Int64
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.taken.Add(int64(n))
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
