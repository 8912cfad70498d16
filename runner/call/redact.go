package call

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
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

// hidePattern matches what a URL in any text must not show: user info and the
// values of the hidden query keys. Its groups are what may stay.
func hidePattern(more []string) *regexp.Regexp {
	var keys []string
	for _, key := range slices.Concat(hiddenQuery, more) {
		keys = append(keys, regexp.QuoteMeta(key))
	}
	return regexp.MustCompile(`(?i)(://)[^/?#\s"]*(@)|([?&;#](?:` + strings.Join(keys, "|") + `)=)[^&#\s"'<>]*`)
}

// A redactor takes a job's secrets out of everything that is recorded of it. It
// is not changed after newRedactor and safe for concurrent use.
type redactor struct {
	forms []form // longest first
	hide  *regexp.Regexp
}

// A form is one spelling of a secret.
type form struct {
	text string
	long bool // the secret is long enough to be searched for in bodies
}

func newRedactor(job *jobspec.Job, hide *regexp.Regexp) *redactor {
	r := &redactor{hide: hide}
	secrets := job.Secrets
	if job.HTTP != nil {
		secrets = append(urlSecrets(job.HTTP.URL, hide), secrets...)
	}
	for _, secret := range secrets {
		for _, text := range spellings(secret) {
			r.forms = append(r.forms, form{text, len(secret) >= minSearched})
		}
	}
	return r
}

// urlSecrets returns the values within a URL that a server may echo and that are
// to be hidden.
func urlSecrets(raw string, hide *regexp.Regexp) []string {
	if !hide.MatchString(raw) {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	var secrets []string
	if password, ok := u.User.Password(); ok && password != "" {
		secrets = append(secrets, password)
	}
	for key, values := range u.Query() {
		if hide.MatchString("?" + key + "=") {
			secrets = append(secrets, slices.DeleteFunc(values, func(v string) bool { return v == "" })...)
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
	b, _ := replace([]byte(s), len(s), r.find([]byte(s), true))
	return string(r.urls(b))
}

// urls hides user info and query values in a text that may hold URLs.
func (r *redactor) urls(b []byte) []byte {
	if !bytes.ContainsAny(b, "@=") {
		return b
	}
	return r.hide.ReplaceAll(b, []byte("${1}${3}"+hidden+"${2}"))
}

// headers returns what may be recorded of an answer's headers: no cookies, no
// line that holds a secret.
func (r *redactor) headers(h http.Header) map[string][]string {
	kept := make(map[string][]string, len(h))
	for name, values := range h {
		if name == "Set-Cookie" || slices.ContainsFunc(values, r.holdsSecret) {
			continue
		}
		for i, v := range values {
			values[i] = string(r.urls([]byte(v)))
		}
		kept[name] = values
	}
	return kept
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
