package call

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// userInfo is in any text that may hold URLs.
var userInfo = regexp.MustCompile(`://[^/?#\s"<>]*@`)

// A redactor takes a job's secrets out of everything that is recorded of it. It
// is not changed after newRedactor and safe for concurrent use.
type redactor struct {
	hide map[string]bool // query keys
	all  []string        // the spellings of the secrets
	long []string        // of those that are long enough to be searched for in bodies
	// slack is how many bytes beyond a cut must be known, so that one of long
	// which begins before it is recognised.
	slack int
}

func newRedactor(job *jobspec.Job, hide map[string]bool) *redactor {
	r := &redactor{hide: hide}
	secrets := job.Secrets
	if job.HTTP != nil {
		secrets = slices.Concat(r.urlSecrets(job.HTTP.URL), secrets)
	}
	for _, secret := range secrets {
		for _, text := range spellings(secret) {
			r.all = append(r.all, text)
			if len(secret) >= minSearched {
				r.long = append(r.long, text)
				r.slack = max(r.slack, len(text))
			}
		}
	}
	return r
}

// urlSecrets returns what is hidden in a URL, since a server may echo it. Short
// ones are left out, since everything else that is recorded may hold them by
// chance; within URLs they are hidden by their place.
func (r *redactor) urlSecrets(raw string) (secrets []string) {
	if r.urls(raw) == raw {
		return nil
	}
	if u, err := url.Parse(raw); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password)
		for key, values := range u.Query() {
			if r.hide[strings.ToLower(key)] {
				secrets = append(secrets, values...)
			}
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < minSearched })
}

// spellings returns the forms that a secret may come back in: as written,
// escaped for a query or a path, within a JSON string, and within base64. JSON is
// written with or without characters beyond ASCII, HTML's and slashes escaped.
func spellings(secret string) []string {
	query := url.QueryEscape(secret)
	all := []string{secret, query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(secret)}
	html, _ := json.Marshal(secret)
	for _, quoted := range []string{string(html), strconv.Quote(secret), strconv.QuoteToASCII(secret)} {
		text := quoted[1 : len(quoted)-1]
		all = append(all, text, strings.ReplaceAll(text, "/", `\/`))
	}
	for before := range 3 {
		all = append(all, base64Core(base64.RawStdEncoding, secret, before),
			base64Core(base64.RawURLEncoding, secret, before))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
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

// body returns the first limit bytes of a body or stream without the secrets
// that are long enough. Bytes beyond limit are only looked at, to find what
// begins before it. The second result says whether anything was taken out.
func (r *redactor) body(s string, limit int) (string, bool) { return cover(s, limit, r.long) }

// line returns s without secrets of any length and without what no URL may show.
func (r *redactor) line(s string) string {
	s, _ = cover(s, len(s), r.all)
	return r.urls(s)
}

// cover puts hidden in place of every run of secrets that begins before limit,
// and cuts s there.
func cover(s string, limit int, secrets []string) (string, bool) {
	type span struct{ from, to int }
	var spans []span // overlaps included
	for _, secret := range secrets {
		for from := 0; ; from++ {
			i := strings.Index(s[from:], secret)
			if i < 0 || from+i >= limit {
				break
			}
			from += i
			spans = append(spans, span{from, from + len(secret)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	at := 0 // what is before is done
	for _, span := range spans {
		if span.from >= at {
			out.WriteString(s[at:span.from] + hidden)
		}
		at = max(at, span.to)
	}
	limit = min(limit, len(s))
	return out.String() + s[min(at, limit):limit], spans != nil
}

// urls hides what no URL may show, in a text that may hold URLs: user info and
// the values of the hidden query keys.
func (r *redactor) urls(s string) string {
	if strings.Contains(s, "@") {
		s = userInfo.ReplaceAllLiteralString(s, "://"+hidden+"@")
	}
	var out strings.Builder
	done, at := 0, 0 // written to out; looked at
	for {
		i := strings.IndexByte(s[at:], '=')
		if i < 0 {
			return out.String() + s[done:]
		}
		key := s[at : at+i]
		at += i + 1
		if i := strings.LastIndexAny(key, "?&;#"); i >= 0 && r.hide[strings.ToLower(key[i+1:])] {
			out.WriteString(s[done:at] + hidden)
			at = len(s) - len(strings.TrimLeftFunc(s[at:], inValue))
			done = at
		}
	}
}

// inValue reports whether a query value goes on with c, wherever it is quoted.
func inValue(c rune) bool { return !strings.ContainsRune("&#\"'<> \t\r\n", c) }

// url returns how a URL is recorded: without user info, fragment and secrets.
func (r *redactor) url(u *url.URL) string {
	shown := *u
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	return r.line(shown.String())
}

// headers returns what may be recorded of an answer's headers: no cookies, no
// line that holds a secret. It changes h.
func (r *redactor) headers(h http.Header) map[string][]string {
	delete(h, "Set-Cookie")
	for name, values := range h {
		for i, v := range values {
			if _, found := cover(v, len(v), r.all); found {
				delete(h, name)
			}
			values[i] = r.urls(v)
		}
	}
	return h
}
