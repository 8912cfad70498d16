package call

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentlimit/jobspec"
)

// hidden stands for what is not recorded.
const hidden = "***"

// minSearched is the length in bytes from which a secret is searched for in
// bodies and streams. Shorter ones would be found in innocent text.
const minSearched = 8

// hiddenQuery are the query keys whose values are never recorded.
var hiddenQuery = []string{"key", "token", "api_key", "apikey", "access_token",
	"auth", "sig", "signature", "password", "secret"}

// hideKeys returns the hidden query keys, in lower case.
func hideKeys(more []string) map[string]bool {
	keys := make(map[string]bool)
	for _, key := range slices.Concat(hiddenQuery, more) {
		keys[strings.ToLower(key)] = true
	}
	return keys
}

// A redactor takes a job's secrets out of everything that is recorded of it. It
// is not changed after newRedactor and safe for concurrent use.
type redactor struct {
	forms []form
	hide  map[string]bool // query keys
}

// A form is one spelling of a secret.
type form struct {
	text string
	long bool // the secret is long enough to be searched for in bodies
}

func newRedactor(job *jobspec.Job, hide map[string]bool) *redactor {
	r := &redactor{hide: hide}
	secrets := job.Secrets
	if job.HTTP != nil {
		secrets = slices.Concat(r.urlSecrets(job.HTTP.URL), secrets)
	}
	for _, secret := range secrets {
		for _, text := range spellings(secret) {
			r.forms = append(r.forms, form{text, len(secret) >= minSearched})
		}
	}
	return r
}

// urlSecrets returns what is hidden in a URL, since a server may echo it.
func (r *redactor) urlSecrets(raw string) []string {
	if r.urls(raw) == raw {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	password, _ := u.User.Password()
	secrets := []string{password}
	for key, values := range u.Query() {
		if r.hide[strings.ToLower(key)] {
			secrets = append(secrets, values...)
		}
	}
	return secrets
}

// spellings returns the forms that a secret may come back in: as written,
// escaped for a query or a path, within a JSON string, and within base64.
func spellings(secret string) []string {
	query := url.QueryEscape(secret)
	all := []string{secret, query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(secret)}
	for _, html := range []bool{true, false} {
		text := jsonEscape(secret, html)
		all = append(all, text, strings.ReplaceAll(text, "/", `\/`))
	}
	for before := range 3 {
		all = append(all, base64Core(base64.RawStdEncoding, secret, before),
			base64Core(base64.RawURLEncoding, secret, before))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

func jsonEscape(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil {
		return s
	}
	return strings.Trim(b.String(), "\"\n")
}

// base64Core returns the characters that secret alone decides when it is encoded
// behind other bytes (before, modulo 3), as the password in Basic credentials
// is. It is empty where too few are left to tell them from other text.
func base64Core(enc *base64.Encoding, secret string, before int) string {
	text := enc.EncodeToString(append(make([]byte, before), secret...))
	first := (before*8 + 5) / 6
	last := (before + len(secret)) * 8 / 6
	if last-first < 4 {
		return ""
	}
	return text[first:last]
}

// slack returns how many bytes beyond a cut must be known, so that a secret
// which begins before it is recognised.
func (r *redactor) slack() int {
	n := 0
	for _, f := range r.forms {
		n = max(n, len(f.text))
	}
	return n
}

// body returns the first limit bytes of a body or stream without the secrets
// that are long enough. Bytes beyond limit are only looked at, to find what
// begins before it. The second result says whether anything was taken out.
func (r *redactor) body(b []byte, limit int) ([]byte, bool) {
	return replace(b, limit, r.find(b, false))
}

// line returns s without secrets of any length and without what no URL may show.
func (r *redactor) line(s string) string {
	if spans := r.find([]byte(s), true); spans != nil {
		b, _ := replace([]byte(s), len(s), spans)
		s = string(b)
	}
	return r.urls(s)
}

// urls hides what no URL may show, in a text that may hold URLs: user info and
// the values of the hidden query keys.
func (r *redactor) urls(s string) string {
	var out strings.Builder
	at := 0                 // what is before has been written
	user, key := -1, len(s) // where user info or a query key would begin
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ':':
			if strings.HasPrefix(s[i:], "://") {
				i += 2
				user = i + 1
			}
		case '@':
			if user >= 0 && at <= user {
				out.WriteString(s[at:user] + hidden)
			}
			if user >= 0 {
				at = i // again, should there be another
			}
		case '?', '&', ';', '#':
			user, key = -1, i+1
		case '/', ' ', '\t', '\n', '"':
			user, key = -1, len(s)
		case '=':
			if key < i && r.hide[strings.ToLower(s[key:i])] {
				out.WriteString(s[at:i+1] + hidden)
				at = i + 1 + valueLen(s[i+1:])
				i = at - 1
			}
			key = len(s)
		}
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}

// valueLen returns how many bytes of s belong to the query value it begins with.
func valueLen(s string) int {
	if n := strings.IndexAny(s, "&#\"'<> \t\r\n"); n >= 0 {
		return n
	}
	return len(s)
}

// headers returns what may be recorded of an answer's headers: no cookies, no
// line that holds a secret. It changes h.
func (r *redactor) headers(h http.Header) map[string][]string {
	delete(h, "Set-Cookie")
	for name, values := range h {
		if slices.ContainsFunc(values, r.holdsSecret) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = r.urls(v)
		}
	}
	return h
}

func (r *redactor) holdsSecret(s string) bool {
	return slices.ContainsFunc(r.forms, func(f form) bool { return strings.Contains(s, f.text) })
}

// url returns how a URL is recorded: without user info, fragment and secrets.
func (r *redactor) url(u *url.URL) string {
	shown := *u
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	return r.line(shown.String())
}

type span struct{ from, to int }

// find returns where secrets are in b, overlaps included, by their start.
func (r *redactor) find(b []byte, short bool) []span {
	var spans []span
	for _, f := range r.forms {
		if !f.long && !short {
			continue
		}
		text := []byte(f.text)
		for from := 0; ; {
			i := bytes.Index(b[from:], text)
			if i < 0 {
				break
			}
			spans = append(spans, span{from + i, from + i + len(text)})
			from += i + 1
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	return spans
}

// replace puts hidden in place of every run of spans that begins before limit,
// and cuts b there. It does not change b.
func replace(b []byte, limit int, spans []span) ([]byte, bool) {
	limit = min(limit, len(b))
	if len(spans) == 0 || spans[0].from >= limit {
		return b[:limit], false
	}
	out := make([]byte, 0, limit)
	at := 0
	for i := 0; i < len(spans) && spans[i].from < limit; {
		out = append(append(out, b[at:spans[i].from]...), hidden...)
		at = spans[i].to
		for ; i < len(spans) && spans[i].from < at; i++ {
			at = max(at, spans[i].to)
		}
	}
	return append(out, b[min(at, limit):limit]...), true
}
