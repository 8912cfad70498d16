package call

import (
	"cmp"
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

// A hider takes out what no URL may show: user info, and the values of the query
// keys that it holds, in lower case.
type hider map[string]bool

func newHider(more []string) hider {
	h := make(hider)
	for _, key := range slices.Concat(hiddenQuery, more) {
		h[strings.ToLower(key)] = true
	}
	return h
}

// HideURLs returns what takes out of a text all that is never recorded of URLs:
// user info, and the values of the usual query keys and of more. It is safe for
// concurrent use.
func HideURLs(more []string) func(text string) string { return newHider(more).urls }

// userInfo is in any text that may hold URLs.
var userInfo = regexp.MustCompile(`://[^/?#\s"<>]*@`)

// A redactor takes a job's secrets out of everything that is recorded of it. It
// is not changed after newRedactor and safe for concurrent use.
type redactor struct {
	hider
	all  []needle // the secrets, as they are and in base64
	long []needle // of those that are long enough to be searched for in bodies
	// slack is how many bytes beyond a cut must be known, so that one of long
	// which begins before it is recognised.
	slack int
}

// newRedactor returns what takes out a's secrets. Those of the URL before all
// redirects are among them: a server may have put it into the present one.
func newRedactor(a Attempt, hide hider) *redactor {
	r := &redactor{hider: hide}
	secrets := a.Job.Secrets
	for _, job := range []*jobspec.Job{a.Job, a.From} {
		if job != nil && job.HTTP != nil {
			secrets = slices.Concat(r.urlSecrets(job.HTTP.URL), r.urlSecrets(job.HTTP.Proxy), secrets)
		}
	}
	for _, secret := range secrets {
		needles := needlesOf(secret)
		r.all = append(r.all, needles...)
		if len(secret) >= minSearched {
			r.long = append(r.long, needles...)
			r.slack = max(r.slack, longestEscape*len(secret))
		}
	}
	return r
}

// urlSecrets returns what is hidden in a URL, since a server may echo it. Short
// ones are left out, since everything else that is recorded may hold them by
// chance; within URLs they are hidden by their place. A user without a password is
// a key.
func (h hider) urlSecrets(raw string) (secrets []string) {
	if h.urls(raw) == raw {
		return nil
	}
	if u, err := url.Parse(raw); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, cmp.Or(password, u.User.Username()))
		for key, values := range u.Query() {
			if h[strings.ToLower(key)] {
				secrets = append(secrets, values...)
			}
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < minSearched })
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
func cover(s string, limit int, secrets []needle) (string, bool) {
	spans := find(s, limit, secrets) // overlaps included
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
func (h hider) urls(s string) string {
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
		if i := strings.LastIndexAny(key, "?&;#"); i >= 0 && h[strings.ToLower(key[i+1:])] {
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
