package jobspec

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// What is typed of a URL behind a value that is put in; other references may come
// first.
var (
	schemeEnds = regexp.MustCompile(`^([^/?#$]|\$\{[^}]*\})*://`)
	userEnds   = regexp.MustCompile(`^([^/?#@$]|\$\{[^}]*\})*@`)
	nameEnds   = regexp.MustCompile(`^(\.|\$\{[^}]*\})*([/?#:]|$)`) // of a host
	pathNext   = regexp.MustCompile(`^(\$\{[^}]*\})*([/?#]|$)`)
)

// delimiters are what ends a part of a URL, for one reader or another.
const delimiters = `/?#@\`

// leads refuses a value that is put in where the URL n says where it leads, if it
// would be more there than the text around it makes it: soFar is what is in front,
// rest what is typed behind. The one that begins the URL, or all behind its ://, may
// be anything, since it says where to go; but a secret only if it brings the scheme, as
// the address of a webhook does, whose host is known to be one. Nor may a segment of the path
// come out empty, since DELETE /users/ is another request than DELETE /users/5. No error
// shows a value.
func (d *decoder) leads(n *node, ref string, soFar []byte, value, rest string, plain []byte) error {
	source, name, _ := strings.Cut(ref, ":")
	if http := d.root.get("http"); n.key != "url" && n.key != "proxy" || n != http.get(n.key) {
		return nil
	}
	done := string(soFar)
	_, authority, begun := strings.Cut(done, "://")
	behind := begun && strings.ContainsAny(authority, "/?#")
	row := source == "item" || source == "job"
	begins := done == "" && !schemeEnds.MatchString(rest)
	ends := rest == "" || strings.ContainsAny(rest[:1], "/?#")
	switch secret := source == "file" || source == "env" && !d.public[name]; {
	case behind && value == "" && ends && strings.HasSuffix(done, "/") && !strings.ContainsAny(done, "?#"):
		return errors.New("the item is empty: it would leave out a part of the path")
	case behind && (!row || behindHost(plain)):
		return nil
	case secret && !begins && !(begun && userEnds.MatchString(rest)):
		text := "a secret cannot be part of a host, which is shown: write the host out"
		if source == "env" {
			text += fmt.Sprintf(", or name %s in public_env if it is none", name)
		}
		return errors.New(text)
	case begins, strings.HasSuffix(done, "://") && rest == "":
		return nil
	case behind && !goesOn(done, value, rest):
		return errors.New("the item cannot go on with the path that a reference has begun: type a / in front of it")
	case !behind && !fitsAuthority(begun, authority, value, rest, row):
		return errors.New("its value would lead the URL elsewhere: it is more than a part of the scheme, the host or the port (the value is not shown, it may hold secrets)")
	}
	return nil
}

// goesOn reports whether an item goes on with a path that another reference has begun:
// by segments, or within one.
func goesOn(done, value, rest string) bool {
	if !strings.HasPrefix(value, "/") || strings.HasSuffix(done, "/") || strings.ContainsAny(done, "?#") {
		return value != "." && value != ".." && url.QueryEscape(value) == value
	}
	path, err := url.PathUnescape(value)
	up := slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
	return err == nil && !up && (rest == "" || !strings.ContainsAny(value, `?#\`))
}

// fitsAuthority reports whether a value stays in its place: in the scheme, unless
// that has ended, or else behind what is there of user, host and port. It may also
// begin the path, if that follows.
func fitsAuthority(begun bool, authority, value, rest string, row bool) bool {
	host := authority[strings.LastIndex(authority, "@")+1:]
	only := func(fits func(r rune) bool) bool {
		return value != "" && !strings.ContainsFunc(value, func(r rune) bool { return !fits(r) })
	}
	name, _, port := strings.Cut(host, ":")
	bracket := strings.HasPrefix(host, "[")
	switch {
	case !begun:
		return only(func(r rune) bool { return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) })
	case userEnds.MatchString(rest):
		return !strings.ContainsAny(value, delimiters)
	case host != "" && !strings.HasSuffix(host, ":") && value != "" && strings.ContainsAny(value[:1], "/?#"):
		return pathNext.MatchString(rest) && (rest == "" || !strings.ContainsAny(value, `?#\`))
	case bracket && !strings.Contains(host, "]"):
		return only(func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF:.", r) })
	case port:
		return only(func(r rune) bool { return '0' <= r && r <= '9' })
	case host == "" && (rest == "" || strings.ContainsAny(rest[:1], "/?#")):
		return value != "" && !strings.ContainsAny(value, delimiters) // url.Parse judges the rest
	case row && nameEnds.MatchString(rest) && name != "" && !strings.HasSuffix(name, ".") && strings.Contains(name+value, "."):
		return false // it would be the end of the domain, or another
	}
	return only(func(r rune) bool {
		return strings.ContainsRune("-_.", r) || unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit)
	})
}
