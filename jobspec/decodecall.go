package jobspec

import (
	"bytes"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	httpKeys = []string{"method", "url", "headers", "body", "json", "form", "body_file", "follow_redirects", "proxy", "tls"}
	execKeys = []string{"argv", "shell", "dir", "env", "inherit_env", "stdin", "stdin_file"}
)

// hash adds one setting to what the job's hash covers: its block, its name and
// its value. Settings come in a fixed order, and those that are absent are left
// out, so that a new one does not change the hashes of old jobs.
func (d *decoder) hash(block, name, value string) {
	for _, s := range [...]string{block, name, value} {
		d.hashed = strconv.AppendInt(d.hashed, int64(len(s)), 10)
		d.hashed = append(d.hashed, ':')
		d.hashed = append(d.hashed, s...)
	}
}

// text returns a text of a call with its references put in, and hashes it. It
// must not be empty.
func (d *decoder) text(block string, n *node) string {
	return d.insert(block, n.key, n, d.str(n))
}

// textOrEmpty is text for where an empty text in quotes means something.
func (d *decoder) textOrEmpty(block string, n *node) string {
	return d.insert(block, n.key, n, d.strOrEmpty(n))
}

func (d *decoder) insert(block, name string, n *node, s string) string {
	value, named := d.expand(n, s, openRefs|secretRefs|jobRefs)
	d.hash(block, name, named)
	return value
}

// filePath returns a path, relative to the file that it is written in.
func (d *decoder) filePath(block string, n *node) string { return n.file.path(d.text(block, n)) }

func (f *file) path(p string) string {
	if p == "" || f.dir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

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

// bodyOf reads the one of body, json, form and body_file that is there.
func (d *decoder) bodyOf(h *HTTP, n *node) {
	switch n.key {
	case "body":
		h.Body = []byte(d.text("http", n))
	case "body_file":
		h.BodyFile = d.filePath("http", n)
	case "json":
		d.body = twin{d.body.value[:0], d.body.named[:0]}
		d.json(&d.body, n)
		d.hash("http", n.key, string(d.body.named))
		h.Body, h.ContentType = bytes.Clone(d.body.value), "application/json"
	case "form":
		h.Body, h.ContentType = d.form(n), "application/x-www-form-urlencoded"
	}
}

// form encodes a form; its fields keep their order, and a list gives one name
// several values.
func (d *decoder) form(n *node) []byte {
	body := []byte{}
	add := func(key string, value *node) {
		if len(body) > 0 {
			body = append(body, '&')
		}
		body = append(body, url.QueryEscape(key)+"="+url.QueryEscape(d.insert("form", key, value, d.strOrEmpty(value)))...)
	}
	d.pairs(n, nil, equal, func(field *node) {
		if field.kind != list {
			add(field.key, field)
			return
		}
		for _, item := range field.kids {
			add(field.key, item)
		}
	})
	return body
}

// twin is JSON that is written twice: as it is sent, and as it is hashed.
type twin struct{ value, named []byte }

func (t *twin) add(s string) {
	t.value = append(t.value, s...)
	t.named = append(t.named, s...)
}

func (t *twin) quote(value, named string) {
	t.value, _ = jsontext.AppendQuote(t.value, value)
	t.named, _ = jsontext.AppendQuote(t.named, named)
}

// json writes n as compact JSON: keys in their order, numbers with their digits.
// A plain scalar is null, true, false or a number only if RFC 8259 spells it so.
func (d *decoder) json(t *twin, n *node) {
	switch {
	case n.kind == list:
		t.add("[")
		for i, kid := range n.kids {
			if i > 0 {
				t.add(",")
			}
			d.json(t, kid)
		}
		t.add("]")
	case n.kind == mapping:
		t.add("{")
		for i, kid := range n.kids {
			if i > 0 {
				t.add(",")
			}
			t.quote(kid.key, kid.key)
			t.add(":")
			d.json(t, kid)
		}
		t.add("}")
	case n.kind == null && n.text == "":
		d.fail(n, `no value: want null or ""`)
	case n.kind != quoted && (n.text == "null" || n.text == "true" || n.text == "false" || isJSONNumber(n.text)):
		t.add(n.text)
	default:
		value, named := d.expand(n, n.text, openRefs|secretRefs|jobRefs)
		t.quote(value, named)
	}
}

// isJSONNumber reports whether s is a number as RFC 8259, section 6 spells it.
func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && jsontext.Value(s).IsValid()
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

// exec reads a command.
func (d *decoder) exec(l layers) *Exec {
	e := &Exec{InheritEnv: true}
	switch n := d.oneOf(l, "argv", "shell"); {
	case n == nil && !d.partial:
		d.fail(d.own.get("exec"), "want argv or shell")
	case n == nil:
	case n.key == "shell":
		d.shell(e, n)
	default:
		d.argv(e, n)
	}
	set(&e.Dir, l.get("dir"), func(n *node) string { return d.filePath("exec", n) })
	d.pairs(l.own.get("env"), l.base.get("env"), equal, func(n *node) {
		if strings.Contains(n.key, "=") {
			d.failAt(n.keyPos(), n, "want a variable's name, without =")
		}
		e.Env = append(e.Env, EnvVar{n.key, d.textOrEmpty("env", n)})
	})
	if n := l.get("inherit_env"); n != nil {
		e.InheritEnv = d.boolean(n)
		d.hash("exec", n.key, n.text)
	}
	switch n := d.oneOf(l, "stdin", "stdin_file"); {
	case n == nil:
	case n.key == "stdin":
		e.Stdin = []byte(d.text("exec", n))
	default:
		e.StdinFile = d.filePath("exec", n)
	}
	return e
}

func (d *decoder) argv(e *Exec, n *node) {
	for i, item := range d.items(n) {
		if i == 0 {
			e.Argv = append(e.Argv, d.text("argv", item))
		} else {
			e.Argv = append(e.Argv, d.textOrEmpty("argv", item))
		}
	}
	if n.kind == list && len(n.kids) == 0 {
		d.fail(n, "want a program and its arguments")
	}
}

// shell takes the text as it is: no reference is looked for, vars come as
// variables. Those that the text names belong to its hash.
func (d *decoder) shell(e *Exec, n *node) {
	e.Shell = d.str(n)
	d.hash("exec", n.key, e.Shell)
	e.Env = slices.Clone(d.values.shell)
	for _, v := range d.values.shell {
		if strings.Contains(e.Shell, v.Name) {
			d.hash("vars", v.Name, v.Value)
		}
	}
}
