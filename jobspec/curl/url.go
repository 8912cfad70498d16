package curl

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

var (
	address = regexp.MustCompile(`^(\w+://)?([^/@]*@)?\[[0-9A-Fa-f:.%]*\]`) // a host in brackets
	port    = regexp.MustCompile(`:\d+/?$`)
	scheme  = regexp.MustCompile(`^\w[\w+.-]*://`)
)

// via sets the proxy, of which curl takes the port to be 1080 if it names none.
func (r *request) via(proxy string) {
	r.job.HTTP.Proxy = "" // of an earlier one
	if proxy == "" || strings.ContainsAny(proxy, "@"+mark) {
		r.leave("%s: no proxy, or one with a user or a variable", r.typed)
		return
	}
	if !scheme.MatchString(proxy) {
		proxy = "http://" + proxy
	}
	if !port.MatchString(proxy) {
		proxy = strings.TrimSuffix(proxy, "/") + ":1080"
	}
	if r.job.HTTP.Proxy = text(proxy); strings.HasPrefix(proxy, "http") {
		r.leave("%s: Proxy-Connection: Keep-Alive", r.typed)
	}
}

// target returns the URL that curl would send to, and the user that it names; empty:
// none.
func (r *request) target(typed string) (target, user string, err error) {
	if !r.globoff && strings.ContainsAny(address.ReplaceAllString(typed, ""), "{}[]") {
		return "", "", errors.New("a URL with {…} or […], which curl would make several of: for_each does that")
	}
	typed, _, _ = strings.Cut(typed, "#")
	if r.get && r.sends {
		r.addData("", "") // which reads a file
		front, query, _ := strings.Cut(typed, "?")
		if query != "" && !strings.HasSuffix(query, "&") {
			query += "&"
		}
		typed = strings.TrimSuffix(front+"?"+query+r.text, "?")
	}
	switch {
	case strings.HasPrefix(typed, mark):
		return typed, "", nil // all of it may be in the variable
	case !scheme.MatchString(typed):
		typed = "http://" + typed
	}
	u, err := url.Parse(variable.ReplaceAllString(typed, "x"))
	switch {
	case err != nil:
		return "", "", errors.New("not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", fmt.Errorf("a URL of %s", u.Scheme)
	case strings.Contains(typed, mark) && u.User != nil:
		return "", "", errors.New("user info in a URL with a variable")
	case strings.Contains(typed, mark):
		return typed, "", nil
	case u.User != nil:
		password, _ := u.User.Password()
		user, u.User = u.User.Username()+":"+password, nil
	}
	ref := *u
	ref.Scheme, ref.Host = "", ""
	u = u.ResolveReference(&ref) // which takes the dots out of its path
	if r.upload != "" && (u.Path == "" || strings.HasSuffix(u.Path, "/")) {
		u = u.JoinPath(path.Base(r.upload))
	}
	return u.String(), user, nil
}
