package call

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/proxy"

	"agentlimit/jobspec"
)

// connect returns a connection along a route: an idle one, or else a new one.
func (c *Client) connect(ctx context.Context, to route) (*conn, error) {
	if idle := c.idle.take(to); idle != nil {
		return idle, nil
	}
	settings, err := c.tlsConfig(to.tls)
	if err != nil {
		return nil, cannot("tls", "read TLS settings", err)
	}
	d := &dialing{settings: settings}
	top, err := d.dial(ctx, to)
	if err != nil {
		if d.socket != nil {
			d.socket.Close()
		}
		return nil, err
	}
	return newConn(to, d.socket, top), nil
}

// dialing is a connection that is being made.
type dialing struct {
	settings *tls.Config
	socket   net.Conn // nil: not yet
}

// dial makes a connection along a route, layer by layer, and returns the top one.
func (d *dialing) dial(ctx context.Context, to route) (top net.Conn, err error) {
	if to.proxy == "" {
		top, err = d.DialContext(ctx, "tcp", to.server)
	} else {
		top, err = d.throughProxy(ctx, to)
	}
	if err == nil && to.scheme == "https" {
		top, err = d.shakeHands(ctx, top, to.server)
	}
	return top, err
}

// Dial is here for [proxy.Dialer], and not called.
func (d *dialing) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext makes the lowest layer.
func (d *dialing) DialContext(ctx context.Context, network, address string) (_ net.Conn, err error) {
	var dialer net.Dialer
	d.socket, err = dialer.DialContext(ctx, network, address)
	return d.socket, err
}

// throughProxy returns a connection to the route's server, or, if that is told with each
// request, to the proxy.
func (d *dialing) throughProxy(ctx context.Context, to route) (net.Conn, error) {
	via, err := url.Parse(to.proxy)
	if err != nil {
		return nil, fail(Broken, "proxy", "proxy: not a valid URL")
	}
	if via.Scheme == "socks5" || via.Scheme == "socks5h" {
		return d.socks(ctx, via, to.server)
	}
	top, err := d.DialContext(ctx, "tcp", address(via))
	if err == nil && via.Scheme == "https" {
		top, err = d.shakeHands(ctx, top, address(via))
	}
	if err == nil && to.server != "" {
		err = tunnel(ctx, top, via, to.server)
	}
	return top, err
}

// socks asks a SOCKS proxy, which looks names up, for a connection to server (RFC 1928).
func (d *dialing) socks(ctx context.Context, via *url.URL, server string) (net.Conn, error) {
	var auth *proxy.Auth
	if via.User != nil {
		password, _ := via.User.Password()
		auth = &proxy.Auth{User: via.User.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", address(via), auth, d)
	if err != nil {
		return nil, err
	}
	return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", server)
}

// tunnel asks the proxy behind a connection to connect it with server (RFC 9110,
// section 9.3.6). A proxy in trouble is like a server that refuses the connection.
func tunnel(ctx context.Context, c net.Conn, via *url.URL, server string) error {
	defer context.AfterFunc(ctx, func() { c.SetDeadline(past) })()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: server}, Host: server,
		Header: http.Header{"User-Agent": {"agentlimit"}}}
	authorize(req, "Proxy-Authorization", via.User)
	if err := req.Write(c); err != nil {
		return &failure{Refused, "connect", err}
	}
	resp, err := http.ReadResponse(bufio.NewReader(&capped{r: c, left: maxHead}), req)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fail(Refused, "connect", "proxy: %w", err)
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return fail(Refused, "connect", "proxy: %s", resp.Status)
	}
	return fail(Broken, "proxy", "proxy: %s", resp.Status)
}

// shakeHands puts a layer of TLS onto c.
func (d *dialing) shakeHands(ctx context.Context, c net.Conn, server string) (net.Conn, error) {
	settings := d.settings.Clone()
	settings.ServerName, _, _ = net.SplitHostPort(server)
	secure := tls.Client(c, settings)
	err := secure.HandshakeContext(ctx)
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(header.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	return secure, err
}

// tlsConfig returns what s says. Its files are read when they are first needed.
func (c *Client) tlsConfig(s jobspec.TLS) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cfg, ok := c.tls[s]; ok {
		return cfg, nil
	}
	cfg, err := newTLSConfig(s)
	if err == nil {
		c.tls[s] = cfg
	}
	return cfg, err
}

func newTLSConfig(s jobspec.TLS) (*tls.Config, error) {
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

// past is a deadline that ends at once what a connection does.
var past = time.Unix(1, 0)
