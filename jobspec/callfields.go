package jobspec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"
)

var httpFields = []field[Job]{
	{"method", (*decoder).method},
	{"url", (*decoder).url},
	{"headers", (*decoder).headers},
	{"body", func(d *decoder, j *Job, n *node) { j.HTTP.Body = []byte(d.content(n)) }},
	{"body_base64", (*decoder).bytesBody},
	{"json", (*decoder).jsonBody},
	{"form", (*decoder).form},
	{"body_file", func(d *decoder, j *Job, n *node) { j.HTTP.BodyFile = d.filePath(n, forCall) }},
	{"follow_redirects", func(d *decoder, j *Job, n *node) { j.HTTP.FollowRedirects = int(d.whole(n, 0, 50)) }},
	{"proxy", (*decoder).proxy},
	{"tls", func(d *decoder, j *Job, n *node) { fields(d, &j.HTTP.TLS, n, tlsFields) }},
}

var tlsFields = []field[TLS]{
	{"ca_file", func(d *decoder, t *TLS, n *node) { t.CAFile = d.filePath(n, forCall) }},
	{"cert_file", func(d *decoder, t *TLS, n *node) { t.CertFile = d.filePath(n, forCall) }},
	{"key_file", func(d *decoder, t *TLS, n *node) { t.KeyFile = d.filePath(n, forCall) }},
	{"insecure", func(d *decoder, t *TLS, n *node) { t.Insecure = d.boolean(n) }},
}

var execFields = []field[Exec]{
	{"argv", (*decoder).argv},
	{"shell", (*decoder).shellText},
	{"dir", func(d *decoder, e *Exec, n *node) { e.Dir = d.filePath(n, forCall) }},
	{"env", (*decoder).variables},
	{"inherit_env", func(d *decoder, e *Exec, n *node) { e.InheritEnv = d.boolean(n) }},
	{"stdin", func(d *decoder, e *Exec, n *node) { e.Stdin = []byte(d.content(n)) }},
	{"stdin_file", func(d *decoder, e *Exec, n *node) { e.StdinFile = d.filePath(n, forCall) }},
}

func (d *decoder) http(j *Job, n *node) {
	j.HTTP = &HTTP{Method: "GET"}
	fields(d, j, n, httpFields)
}

func (d *decoder) exec(j *Job, n *node) {
	j.Exec = &Exec{InheritEnv: true}
	fields(d, j.Exec, n, execFields)
}

// complete refuses a job in which something is missing.
func (d *decoder) complete(n *node) {
	http, exec := n.get("http"), n.get("exec")
	tls := http.get("tls")
	switch {
	case (http == nil) == (exec == nil):
		d.fail(n, "want one of http and exec")
	case exec != nil && exec.get("argv") == nil && exec.get("shell") == nil:
		d.fail(exec, "want argv or shell")
	case http != nil && http.get("url") == nil:
		d.fail(http, "want a url")
	case http != nil && (tls.get("cert_file") == nil) != (tls.get("key_file") == nil):
		d.fail(http, "want cert_file and key_file together")
	}
}

func (d *decoder) method(j *Job, n *node) {
	m := d.open(n)
	if m != "" && (m != strings.ToUpper(m) || !httpguts.ValidHeaderFieldName(m)) {
		d.wrong(n, "want a method in upper case, such as GET")
	}
	j.HTTP.Method = m
}

// url reads where a request goes, and the host key unless the job names one.
func (d *decoder) url(j *Job, n *node) {
	j.HTTP.URL = d.text(n)
	if u := d.parseURL(n, j.HTTP.URL, "http", "https"); u != nil {
		switch key, err := HostKey(u); {
		case err != nil:
			d.fail(n, "%v", err)
		default:
			j.Host = cmp.Or(j.Host, key)
		}
	}
}

func (d *decoder) proxy(j *Job, n *node) {
	j.HTTP.Proxy = d.text(n)
	d.parseURL(n, j.HTTP.Proxy, "http", "https", "socks5")
}

// parseURL returns nil if s, which was typed at n, is no absolute URL of one of
// the schemes. Its message does not quote s, which may hold secrets.
func (d *decoder) parseURL(n *node, s string, schemes ...string) *url.URL {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if _, bad := errors.AsType[url.EscapeError](err); bad {
		d.fail(n, "want %%25 for a %% that begins no escape (the value is not shown, it may hold secrets)")
		return nil
	}
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		d.fail(n, "want a URL that begins with %s:// and a host (the value is not shown, it may hold secrets)", strings.Join(schemes, ":// or "))
		return nil
	}
	return u
}

// framing are the headers that net/http sets by itself.
var framing = []string{"Content-Length", "Transfer-Encoding", "Trailer"}

// headers reads header lines; a list gives one name several.
func (d *decoder) headers(j *Job, n *node) {
	d.pairs(n, func(kid *node) {
		if n.rival(kid.key) != kid {
			d.failKey(kid, "doubled key")
		} else if !httpguts.ValidHeaderFieldName(kid.key) {
			d.failKey(kid, "%q: want a header name, such as Accept", kid.key)
		} else if slices.Contains(framing, http.CanonicalHeaderKey(kid.key)) {
			d.warn(kid, "%s: it is left out, since a request's body says it", kid.key)
		}
		for _, value := range kid.several() {
			h := Header{kid.key, d.content(value)}
			if !httpguts.ValidHeaderFieldValue(h.Value) {
				d.fail(value, "want a header value without line breaks and control characters (the value is not shown, it may be a secret)")
			}
			j.HTTP.Headers = append(j.HTTP.Headers, h)
		}
	})
}

// bytesBody reads a body that need not be text.
func (d *decoder) bytesBody(j *Job, n *node) {
	body, err := base64.StdEncoding.DecodeString(d.content(n))
	if err != nil {
		d.fail(n, "want bytes in base64 (RFC 4648, section 4)")
	}
	j.HTTP.Body = body
}

func (d *decoder) jsonBody(j *Job, n *node) {
	d.buffer = d.json(d.buffer[:0], n, forCall)
	j.HTTP.Body, j.HTTP.ContentType = bytes.Clone(d.buffer), "application/json"
}

// json appends n as compact JSON: keys in their order, numbers with their
// digits. A plain scalar is null, true, false or a number only if RFC 8259 spells
// it so.
func (d *decoder) json(b []byte, n *node, as use) []byte {
	switch {
	case n.kind >= list:
		brackets := "[]"
		if n.kind == mapping {
			brackets = "{}"
		}
		b = append(b, brackets[0])
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			if n.kind == mapping {
				b = append(quote(b, kid.key), ':')
			}
			b = d.json(b, kid, as)
		}
		return append(b, brackets[1])
	case n.kind == null && n.text == "" && as == forCall:
		d.fail(n, `no value: want null or ""`)
	case d.retyped[n] != "": // of no other use is there any
		return quote(b, d.expand(n, d.retyped[n], as))
	case as < forTextHash && (n.kind == number || n.kind != quoted && jsonScalar.MatchString(n.text)):
		return append(b, n.text...)
	}
	switch text := d.expand(n, n.text, as); {
	case d.bare[n] && !strings.Contains(text, "${"):
		return append(b, text...)
	case as == forPathHash:
		return quote(b, behindMark(text))
	default:
		return quote(b, text)
	}
}

// quote tells apart also what is no text, by its bytes.
func quote(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		b = append(b, s...)
	}
	return b
}

// form encodes a form; its fields keep their order, and a list gives one name
// several values.
func (d *decoder) form(j *Job, n *node) {
	var all []string
	d.pairs(n, func(kid *node) {
		for _, value := range kid.several() {
			all = append(all, url.QueryEscape(kid.key)+"="+url.QueryEscape(d.contentOrNone(value)))
		}
	})
	j.HTTP.Body, j.HTTP.ContentType = []byte(strings.Join(all, "&")), "application/x-www-form-urlencoded"
}

func (d *decoder) argv(e *Exec, n *node) {
	for i, item := range d.items(n) {
		read := d.contentOrNone
		if i == 0 {
			read = d.text
		}
		e.Argv = append(e.Argv, read(item))
	}
	if n.kind == list && len(n.kids) == 0 {
		d.fail(n, "want a program and its arguments")
	}
}

// reference matches what is one elsewhere.
var reference = regexp.MustCompile(`\$\{(env|file|var|item|job):[^}]*\}`)

// shellText takes the text as it is: no reference is looked for, vars come as
// variables.
func (d *decoder) shellText(e *Exec, n *node) {
	if at := reference.FindString(n.text); at != "" {
		d.warn(n, "%s is not put in here: a shell has $ITEM_NAME and $VAR_NAME, and secrets through env", at)
	}
	e.Shell, e.Env = d.str(n), slices.Clone(d.shell)
}

func (d *decoder) variables(e *Exec, n *node) {
	d.pairs(n, func(kid *node) {
		if strings.Contains(kid.key, "=") {
			d.failKey(kid, "want a variable's name, without =")
		}
		e.Env = append(e.Env, EnvVar{kid.key, d.contentOrNone(kid)})
	})
}

// hash returns the hash of a call, whatever the order of its keys. What is
// absent has no part in it, so that a new setting does not change the hashes of
// old jobs.
func (d *decoder) hash(n *node) string {
	d.sorted = append(d.sorted[:0], n.kids...)
	slices.SortFunc(d.sorted, func(a, b *node) int { return strings.Compare(a.key, b.key) })
	b := append(d.buffer[:0], n.key...)
	for _, kid := range d.sorted {
		switch b = quote(b, kid.key); kid.key {
		case "json":
			b = d.json(b, kid, forHash)
		case "shell":
			b = d.shellHash(quote(b, kid.text), kid.text)
		case "body_file", "tls", "dir", "stdin_file":
			b = d.json(b, kid, forPathHash)
		default:
			b = d.json(b, kid, forTextHash)
		}
	}
	sum := sha256.Sum256(b)
	d.buffer = hex.AppendEncode(append(b[:0], "sha256:"...), sum[:])
	return string(d.buffer)
}

// shellHash appends the vars that the text of a shell names.
func (d *decoder) shellHash(b []byte, text string) []byte {
	for _, v := range d.shell {
		if strings.Contains(text, v.Name) {
			b = quote(quote(b, v.Name), v.Value)
		}
	}
	return b
}
