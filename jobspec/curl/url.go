package curl

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// target returns the URL that curl would send to. User info in it becomes the user.
func (r *request) target(typed string) (string, error) {
	if !r.globoff && strings.ContainsAny(regexp.MustCompile(`^(\w+://)?([^/@]*@)?\[[0-9A-Fa-f:.%]*\]`).ReplaceAllString(typed, ""), "{}[]") {
		return "", errors.New("a URL with {…} or […], which curl would make several of: for_each does that")
	}
	query := r.query
	if r.get && r.body != nil {
		query = append(slices.Clone(query), strings.Join(r.body, "")+r.whole())
	}
	typed, _, _ = strings.Cut(typed, "#")
	if len(query) > 0 {
		join := "?"
		if strings.Contains(typed, "?") {
			join = "&"
		}
		typed += join + strings.Join(query, "&")
	}
	switch {
	case strings.HasPrefix(typed, mark):
		return typed, nil // all of it may be in the variable
	case !regexp.MustCompile(`^\w[\w+.-]*://`).MatchString(typed):
		typed = "http://" + typed
	}
	u, err := url.Parse(variable.ReplaceAllString(typed, "x"))
	switch {
	case err != nil:
		return "", errors.New("not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("a URL of %s", u.Scheme)
	case strings.Contains(typed, mark) && u.User != nil:
		return "", errors.New("user info in a URL with a variable")
	case strings.Contains(typed, mark):
		return typed, nil
	case u.User != nil:
		password, _ := u.User.Password()
		r.user, u.User = u.User.Username()+":"+password, nil
	}
	if !r.asIs {
		ref := *u
		ref.Scheme, ref.Host = "", ""
		u = u.ResolveReference(&ref) // which takes the dots out of its path
	}
	if r.upload != "" && (u.Path == "" || strings.HasSuffix(u.Path, "/")) {
		u = u.JoinPath(path.Base(r.upload))
	}
	return u.String(), nil
}

// host returns the host of a URL, for names. Variables that it is in are no secrets.
func (w *writer) host(target string) string {
	scheme, rest, found := strings.Cut(target, "://")
	if !found {
		scheme, rest = "", target
	}
	host := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		host = rest[:end]
	}
	for _, v := range variable.FindAllStringSubmatch(scheme+host, -1) {
		if !slices.Contains(w.public, v[1]) {
			w.public = append(w.public, v[1])
		}
	}
	host, _, _ = strings.Cut(host, ":")
	return variable.ReplaceAllString(host, "$1")
}

// secretKey matches keys of a query whose values identify who calls.
var secretKey = regexp.MustCompile(`(?i)^(key|token|api_?key|access_token|auth|sig|signature|password|secret)$`)

// hideQuery returns a URL with variables for what is secret in its query.
func (w *writer) hideQuery(target, host string) string {
	front, query, found := strings.Cut(target, "?")
	if !found {
		return target
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if key, value, _ := strings.Cut(pair, "="); secretKey.MatchString(key) && value != "" && !strings.Contains(value, mark) {
			pairs[i] = key + "=" + mark + w.variable(key+"_"+host, value, "what stands behind "+key+"= in the URL") + mark
		}
	}
	return front + "?" + strings.Join(pairs, "&")
}
