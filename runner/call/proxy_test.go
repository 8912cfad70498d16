package call

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentlimit/jobspec"
)

func TestProxy(t *testing.T) {
	var target string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		target = r.RequestURI
		if r.Method == "CONNECT" {
			switch {
			case strings.HasPrefix(r.Host, "busy."):
				w.WriteHeader(503)
			default:
				w.WriteHeader(407)
			}
		}
	})
	via := func(url, proxy string) *jobspec.Job {
		return httpJob(url, func(j *jobspec.Job) { j.HTTP.Proxy = proxy })
	}
	c := newClient(t, Config{})
	job := via("http://far.example/x", proxy.URL)
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
	if target != "http://far.example/x" {
		t.Errorf("the proxy was asked for %q", target)
	}
	tests := []struct {
		name string
		job  *jobspec.Job
		kind Kind
		code string
	}{
		{"a proxy that wants a password", via("https://far.example/", proxy.URL), Broken, "proxy"},
		{"a proxy in trouble", via("https://busy.example/", proxy.URL), Refused, "connect"},
		{"a proxy that is not there", via("http://far.example/", "http://u:pw12@"+closedAddress(t)), Refused, "connect"},
		{"a proxy that is no URL", via("http://far.example/", "http://u:pw12@h:x"), Broken, "proxy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := c.Call(t.Context(), Attempt{Job: tt.job})
			check(t, tt.job, out, tt.kind, tt.code, false)
			if strings.Contains(out.Error.Message, "pw12") {
				t.Errorf("message %q shows the password", out.Error.Message)
			}
		})
	}
}

// join carries bytes both ways until either side ends.
func join(a, b net.Conn) {
	go func() { io.Copy(a, b); a.Close() }()
	io.Copy(b, a)
	b.Close()
}

// tunnels makes a handler that is a proxy for CONNECT alone. It wants a name and a
// password, and leads to one address whatever it is asked for.
func tunnels(address string, asked *string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Method + " " + r.RequestURI
		if r.Header.Get("Proxy-Authorization") != "Basic dTpwdzEy" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		there, err := net.Dial("tcp", address)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		here, _, _ := http.NewResponseController(w).Hijack()
		join(here, there)
	}
}

// socksTo is a SOCKS proxy that leads to one address whatever it is asked for. It wants a
// name and a password (RFC 1928, RFC 1929).
func socksTo(t *testing.T, address string, asked *string) string {
	url, _ := scripted(t, func(c net.Conn, r *bufio.Reader) {
		next := func(n int) []byte {
			b := make([]byte, n)
			io.ReadFull(r, b)
			return b
		}
		if !slices.Contains(next(int(next(2)[1])), 2) {
			c.Write([]byte{5, 0xff})
			return
		}
		c.Write([]byte{5, 2})
		user := string(next(int(next(2)[1])))
		password := string(next(int(next(1)[0])))
		if user != "u" || password != "pw12" {
			c.Write([]byte{1, 1})
			return
		}
		c.Write([]byte{1, 0})
		next(4) // version, command, nothing, a name follows
		name := string(next(int(next(1)[0])))
		*asked = net.JoinHostPort(name, strconv.Itoa(int(binary.BigEndian.Uint16(next(2)))))
		there, err := net.Dial("tcp", address)
		if err != nil {
			c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		join(c, there)
	})
	return strings.TrimPrefix(url, "http://")
}

// TestProxies goes to a server by each kind of proxy, twice: the connection is kept.
func TestProxies(t *testing.T) {
	var auth, asked string
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	secure, ca := serveTLS(t, nil)
	forward := serve(t, func(w http.ResponseWriter, r *http.Request) {
		auth, asked = r.Header.Get("Proxy-Authorization"), r.Method+" "+r.RequestURI
	})
	behind := strings.TrimPrefix(secure, "https://")
	port := behind[strings.LastIndex(behind, ":"):]
	tunnel := serve(t, tunnels(behind, &asked))
	tunnelTLS, tunnelCA := serveTLSHandler(t, nil, tunnels(behind, &asked))
	tests := []struct {
		name, url, proxy string
		ca               string
		asks             string
	}{
		{"a proxy that forwards", "http://far.example/x?y", "http://u:pw12@" + strings.TrimPrefix(forward.URL, "http://"), "", "GET http://far.example/x?y"},
		{"a tunnel", "https://127.0.0.1" + port, "http://u:pw12@" + strings.TrimPrefix(tunnel.URL, "http://"), ca, "CONNECT 127.0.0.1" + port},
		{"a tunnel in TLS", "https://127.0.0.1" + port, "https://u:pw12@" + strings.TrimPrefix(tunnelTLS, "https://"), tunnelCA, "CONNECT 127.0.0.1" + port},
		{"SOCKS", "http://far.example/", "socks5://u:pw12@" + socksTo(t, strings.TrimPrefix(plain.URL, "http://"), &asked), "", "far.example:80"},
		{"SOCKS, and TLS", "https://example.com/", "socks5://u:pw12@" + socksTo(t, behind, &asked), ca, "example.com:443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job := httpJob(tt.url, func(j *jobspec.Job) { j.HTTP.Proxy, j.HTTP.TLS = tt.proxy, jobspec.TLS{CAFile: tt.ca} })
			c := newClient(t, Config{})
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
			if asked != tt.asks {
				t.Errorf("the proxy was asked for %q, want %q", asked, tt.asks)
			}
			asked = ""
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
			if again := asked != ""; again != (tt.proxy[:4] == "http" && tt.url[:5] == "http:") {
				t.Errorf("the second call asked the proxy for %q: the connection is to be kept", asked)
			}
		})
	}
	if auth != "Basic dTpwdzEy" {
		t.Errorf("the proxy that forwards was shown %q", auth)
	}
	job := httpJob("http://far.example/", func(j *jobspec.Job) {
		j.HTTP.Proxy = "socks5://u:wrong@" + socksTo(t, behind, &asked)
	})
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), Refused, "connect", false)
}

func TestAddress(t *testing.T) {
	for raw, want := range map[string]string{
		"http://h/":             "h:80",
		"https://h/":            "h:443",
		"https://h:8443/":       "h:8443",
		"http://[::1]/":         "[::1]:80",
		"http://bücher.example": "xn--bcher-kva.example:80",
		"socks5://p":            "p:1080",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := address(u); got != want {
			t.Errorf("address(%s) = %q, want %q", raw, got, want)
		}
	}
}
