package call

import (
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpguts"

	"agentlimit/jobspec"
)

// A route is what makes connections fit for each other's requests.
type route struct {
	scheme string // http or https
	server string // host:port; empty where the proxy is told with each request
	proxy  string // its URL; empty: none
	tls    jobspec.TLS
}

// routeOf returns the way of h's request, which it tells what a proxy on it wants to know.
func routeOf(req *http.Request, h *jobspec.HTTP) (route, error) {
	to := route{scheme: req.URL.Scheme, server: address(req.URL), tls: h.TLS}
	proxy, err := proxyOf(req, h)
	if err != nil || proxy == nil {
		return to, err
	}
	to.proxy = proxy.String()
	if to.scheme == "http" && proxy.Scheme != "socks5" && proxy.Scheme != "socks5h" {
		to.server = ""
		authorize(req, "Proxy-Authorization", proxy.User)
	}
	return to, nil
}

// proxyOf returns the job's proxy, else that of the environment, else nil. No error
// quotes a URL, and so a password in it.
func proxyOf(req *http.Request, h *jobspec.HTTP) (*url.URL, error) {
	if h.Proxy == "" {
		proxy, err := http.ProxyFromEnvironment(req)
		if err != nil {
			return nil, fail(Broken, "proxy", "proxy of the environment: not a valid URL")
		}
		return proxy, nil
	}
	proxy, err := url.Parse(h.Proxy)
	if err != nil {
		return nil, fail(Broken, "proxy", "proxy: not a valid URL")
	}
	return proxy, nil
}

// authorize puts user info, if there is any, into a header of req (RFC 7617).
func authorize(req *http.Request, header string, user *url.Userinfo) {
	if user != nil {
		password, _ := user.Password()
		basic := http.Request{Header: make(http.Header)}
		basic.SetBasicAuth(user.Username(), password)
		req.Header.Set(header, basic.Header.Get("Authorization"))
	}
}

// defaultPorts are those that URLs leave out.
var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// address returns where u leads, as host:port.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	if ascii, err := httpguts.PunycodeHostPort(addr); err == nil {
		return ascii
	}
	return addr
}
