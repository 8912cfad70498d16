package call

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"os"
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
	t, err := newTransport(key, c.concurrency)
	if err != nil {
		return nil, err
	}
	c.transports[key] = t
	return t, nil
}

// newTransport returns a transport that sets no limits and no times of its own,
// since the job has them. It speaks HTTP/1.1 alone: one request a connection, so
// that ending an attempt is seen by the server, and no request waits for a
// stream within an attempt that holds permits. Bodies come as they were sent:
// compression is not asked for, and not undone.
func newTransport(key transportKey, concurrency int) (*http.Transport, error) {
	proxy, err := proxyOf(key.proxy)
	if err != nil {
		return nil, err
	}
	settings, err := tlsConfig(key.tls)
	if err != nil {
		return nil, &failure{Broken, "tls", err}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  proxy,
		OnProxyConnectResponse: checkProxy,
		DialContext:            dial,
		TLSClientConfig:        settings,
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxIdleConns:           concurrency,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: 1 << 20,
	}, nil
}

func proxyOf(raw string) (func(*http.Request) (*url.URL, error), error) {
	if raw == "" {
		return http.ProxyFromEnvironment, nil
	}
	u, err := url.Parse(raw)
	if err != nil { // which quotes the URL, and so the password in it
		return nil, fail(Broken, "proxy", "proxy: not a valid URL")
	}
	return http.ProxyURL(u), nil
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

// tlsConfig returns nil for the zero settings.
func tlsConfig(s jobspec.TLS) (*tls.Config, error) {
	if s == (jobspec.TLS{}) {
		return nil, nil
	}
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
