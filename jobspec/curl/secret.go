package curl

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	// secretHeader and secretKey match the names of headers, and the keys of a query, that
	// may identify who calls; notSecret, headers whose names say that they do not. What is
	// hidden without need costs a variable, what is not hidden with need more.
	secretHeader = regexp.MustCompile(`(?i)authorization|authentication|^cookie|key$|\bauth\b|token|jwt|secret|passw|passphrase|session|credential|signature|\bsign$|csrf|xsrf|wsse|honeycomb`)
	notSecret    = regexp.MustCompile(`(?i)idempotency|websocket|surrogate`)
	secretKey    = regexp.MustCompile(`(?i)^(key|pwd|sig|sign|code|pass|app[-_]?id)$|(api|access|account|app|client|consumer|master|private|subscription)[-_]?key|auth|credential|jwt|passw|passphrase|secret|session|signature|token`)

	attribute = regexp.MustCompile(`[\w.-]+=` + mark) // with a variable as its value
	origin    = regexp.MustCompile(`^(?:.*?://)?([^/?:]*)[^/?]*`)
	notName   = regexp.MustCompile(`[^A-Z0-9]+`)
)

// host returns the host of a URL, for names. Variables that it is in are no secrets.
func (w *writer) host(target string) string {
	found := origin.FindStringSubmatch(target)
	for _, v := range variable.FindAllStringSubmatch(found[0], -1) {
		if !slices.Contains(w.public, v[1]) {
			w.public = append(w.public, v[1])
		}
	}
	return variable.ReplaceAllString(found[1], "$1")
}

// told reports whether a text has nothing of its own that could be a secret, but only
// variables that have a name already.
func told(text string) bool {
	return !strings.ContainsFunc(variable.ReplaceAllString(attribute.ReplaceAllString(text, mark), ""), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// hide returns a header's value with a variable for what is secret in it.
func (w *writer) hide(name, value, host string) string {
	scheme, secret := "", value
	word, rest, found := strings.Cut(value, " ")
	bearer := found && strings.EqualFold(word, "Bearer")
	if found && strings.HasSuffix(name, "Authorization") || bearer {
		scheme, secret = word+" ", rest
	}
	if strings.EqualFold(name, "Referer") {
		return w.hideQuery(value, host)
	}
	if !bearer && (!secretHeader.MatchString(name) || notSecret.MatchString(name)) || told(secret) {
		return value
	}
	what := "what stands behind " + strings.TrimSpace(name+": "+scheme)
	if scheme == "Basic " {
		what = "printf %s USER:PASSWORD | base64 -w0"
	}
	return scheme + w.variable(name+"_"+host, secret, what)
}

// hideQuery returns a URL with variables for what is secret in its query.
func (w *writer) hideQuery(target, host string) string {
	front, query, found := strings.Cut(target, "?")
	if !found {
		return target
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if key, value, _ := strings.Cut(pair, "="); SecretKey(key) && !told(value) {
			pairs[i] = key + "=" + w.variable(key+"_"+host, value, "what stands behind "+key+"= in the URL")
		}
	}
	return front + "?" + strings.Join(pairs, "&")
}

// SecretKey reports whether a key of a URL's query, as it is written there, is of what may
// be a secret.
func SecretKey(key string) bool {
	if plain, err := url.QueryUnescape(key); err == nil {
		key = plain
	}
	return secretKey.MatchString(key)
}

// HideURL returns a URL with references for what is secret in its query, and the variables
// that these name. What kept matches is no secret.
func HideURL(target string, kept *regexp.Regexp) (hidden string, secrets []Secret) {
	var w writer
	var all []string
	hidden = kept.ReplaceAllStringFunc(target, func(part string) string {
		all = append(all, part)
		return mark + strconv.Itoa(len(all)-1) + mark
	})
	hidden = w.hideQuery(hidden, w.host(hidden))
	return variable.ReplaceAllStringFunc(hidden, func(marked string) string {
		name := strings.Trim(marked, mark)
		if at, err := strconv.Atoi(name); err == nil {
			return all[at]
		}
		return "${env:" + name + "}"
	}), w.Secrets
}

// shellVariables adds the variables of the command line that a job has to those that are
// to be set.
func (w *writer) shellVariables(j job) {
	for _, found := range variable.FindAllStringSubmatch(fmt.Sprint(j), -1) {
		if !slices.ContainsFunc(w.Secrets, func(s Secret) bool { return s.Name == found[1] }) {
			w.Secrets = append(w.Secrets, Secret{found[1], "a variable of the command lines", ""})
		}
	}
}

// variable returns a variable with a value: one that is known already, or a new one.
func (w *writer) variable(of, value, what string) string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToUpper(of), "_"), "_")
	for n, numbered := 2, name; ; n, numbered = n+1, name+"_"+strconv.Itoa(n) {
		at := slices.IndexFunc(w.Secrets, func(s Secret) bool { return s.Name == numbered })
		if at < 0 {
			w.Secrets = append(w.Secrets, Secret{numbered, what, value})
		}
		if at < 0 || w.Secrets[at].value == value {
			return mark + numbered + mark
		}
	}
}
