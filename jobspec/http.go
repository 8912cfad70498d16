package jobspec

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var httpKeys = []string{"method", "url", "headers", "body", "json", "form", "body_file", "follow_redirects", "proxy", "tls"}

// http reads a request and returns it with its host key.
func (d *decoder) http(l layers) (*HTTP, string) {
	h := &HTTP{Method: "GET"}
	set(&h.Method, l.get("method"), d.method)
	d.hash("http", "method", h.Method)
	host := d.url(h, l)
	d.pairs(l.own.get("headers"), l.base.get("headers"), strings.EqualFold, func(n *node) { d.header(h, n) })
	if n := d.oneOf(l, "body", "json", "form", "body_file"); n != nil {
		d.bodyOf(h, n)
	}
	if n := l.get("follow_redirects"); n != nil {
		h.FollowRedirects = int(d.whole(n, 0, 50))
		d.hash("http", n.key, n.text)
	}
	if n := l.get("proxy"); n != nil {
		h.Proxy = d.text("http", n)
		d.parseURL(n, h.Proxy, "http", "https", "socks5")
	}
	h.TLS = d.tls(d.block(l, "tls", "ca_file", "cert_file", "key_file", "insecure"))
	return h, host
}

func (d *decoder) method(n *node) string {
	value, _ := d.expand(n, d.str(n), openRefs)
	switch {
	case value == "":
	case !httpguts.ValidHeaderFieldName(value):
		d.wrong(n, "want a method, such as GET")
	case value != strings.ToUpper(value):
		d.wrong(n, "want a method in upper case, such as GET")
	case value == "CONNECT":
		d.wrong(n, "this method cannot be sent")
	}
	return value
}

func (d *decoder) url(h *HTTP, l layers) (host string) {
	n := l.get("url")
	if n == nil {
		if !d.partial {
			d.fail(d.own.get("http"), "want a url")
		}
		return ""
	}
	h.URL = d.text("http", n)
	u := d.parseURL(n, h.URL, "http", "https")
	if u == nil {
		return ""
	}
	host, err := HostKey(u)
	if err != nil {
		d.fail(n, "%v", err)
	}
	d.typedSecrets(u)
	return host
}

// parseURL returns nil if s, which was typed at n, is no absolute URL of one of
// the schemes. Its message does not quote s, which may hold secrets.
func (d *decoder) parseURL(n *node, s string, schemes ...string) *url.URL {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		d.fail(n, "want a URL that begins with %s:// and a host (the value is not shown, it may hold secrets)", strings.Join(schemes, ":// or "))
		return nil
	}
	return u
}

// secretQueries are the query keys whose values count as secrets wherever they
// are typed.
var secretQueries = []string{
	"key", "token", "api_key", "apikey", "access_token", "auth", "sig", "signature", "password", "secret",
}

// typedSecrets collects the secrets that a URL holds as typed: its password, and
// the values of some query keys. Short ones would hide too much else.
func (d *decoder) typedSecrets(u *url.URL) {
	collect := func(s string) {
		if len(s) >= shortSecret {
			d.secrets = append(d.secrets, s)
		}
	}
	if password, set := u.User.Password(); set {
		collect(password)
	}
	for query := u.RawQuery; query != ""; {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if !slices.Contains(secretQueries, strings.ToLower(key)) {
			continue
		}
		collect(value)
		if plain, err := url.QueryUnescape(value); err == nil && plain != value {
			collect(plain)
		}
	}
}

// ownHeaders are set by the client from the request itself.
var ownHeaders = []string{"content-length", "transfer-encoding", "trailer"}

func (d *decoder) header(h *HTTP, n *node) {
	value := d.text("headers", n)
	switch {
	case !httpguts.ValidHeaderFieldName(n.key):
		d.failAt(n.keyPos(), n, "%q: want a header name, such as Accept", n.key)
	case slices.Contains(ownHeaders, strings.ToLower(n.key)):
		d.failAt(n.keyPos(), n, "leave out %q: it follows from the request", n.key)
	case !httpguts.ValidHeaderFieldValue(value):
		d.fail(n, "want a header value without line breaks and control characters (the value is not shown, it may be a secret)")
	}
	h.Headers = append(h.Headers, Header{n.key, value})
}

func (d *decoder) tls(l layers) (t TLS) {
	path := func(n *node) string { return d.filePath("tls", n) }
	set(&t.CAFile, l.get("ca_file"), path)
	set(&t.CertFile, l.get("cert_file"), path)
	set(&t.KeyFile, l.get("key_file"), path)
	if n := l.get("insecure"); n != nil {
		t.Insecure = d.boolean(n)
		d.hash("tls", n.key, n.text)
	}
	if cert, key := l.get("cert_file"), l.get("key_file"); (cert == nil) != (key == nil) && !d.partial {
		d.fail(d.own.get("http"), "want cert_file and key_file together")
	}
	return t
}
