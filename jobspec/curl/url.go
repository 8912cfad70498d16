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
		query = append(slices.Clone(query), strings.Join(r.body, ""))
	}
	typed, _, _ = strings.Cut(typed, "#")
	if len(query) > 0 {
		join := "?"
		if strings.Contains(typed, "?") {
			join = "&"
		}
		typed += join + strings.Join(query, "&")
	}
	if !strings.Contains(typed, "://") && !strings.HasPrefix(typed, mark) {
		typed = "http://" + typed
	}
	if strings.HasPrefix(typed, mark) {
		return typed, nil // all of it may be in the variable
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

// secretKey matches keys of a query whose values identify who calls.
var secretKey = regexp.MustCompile(`(?i)^(key|token|api_?key|access_token|auth|sig|signature|password|secret)$`)

// hideQuery returns a URL with variables for what is secret in its query.
func (w *writer) hideQuery(target string) string {
	front, query, found := strings.Cut(target, "?")
	if !found {
		return target
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if key, value, _ := strings.Cut(pair, "="); secretKey.MatchString(key) && value != "" && !strings.Contains(value, mark) {
			pairs[i] = key + "=" + mark + w.variable(key+"_"+hostOf(target), value, "what stands behind "+key+"= in the URL") + mark
		}
	}
	return front + "?" + strings.Join(pairs, "&")
}

// hostOf is the host of a URL, for names.
func hostOf(target string) string {
	_, rest, found := strings.Cut(target, "://")
	if !found {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, ":")
	return host
}

// publish names the variables that a host is in, which are no secrets.
func (w *writer) publish(target string) {
	host := target
	if at := strings.Index(target, "://"); at >= 0 {
		if end := strings.IndexAny(target[at+3:], "/?"); end >= 0 {
			host = target[:at+3+end]
		}
	} else if end := strings.IndexAny(target, "/?"); end >= 0 {
		host = target[:end]
	}
	for _, v := range variable.FindAllStringSubmatch(host, -1) {
		if !slices.Contains(w.public, v[1]) {
			w.public = append(w.public, v[1])
		}
	}
}
