package jobspec

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"agentlimit/limits"
)

var (
	errHost = errors.New("want a host name, such as api.example.com, gpu-box:8080 or [::1]")
	errPort = errors.New("want a port between 1 and 65535")
)

// HostKey returns the host key of an http or https URL: lower case, IDNA to
// ASCII, no trailing dot, no user info, the port only where it is not the
// scheme's default, IPv6 in brackets. An error never quotes the URL, which may
// hold secrets.
func HostKey(u *url.URL) (string, error) {
	switch u.Scheme {
	case "http":
		return hostKey(u.Hostname(), u.Port(), "80")
	case "https":
		return hostKey(u.Hostname(), u.Port(), "443")
	}
	return "", errors.New("want a URL that begins with http:// or https://")
}

// HostTag returns the host key that a user names outright, such as "gpu-box",
// "API.example.com:8443" or "[::1]:8080". The ports 80 and 443 are refused: keys
// of URLs leave them out, so the two would never meet.
func HostTag(s string) (string, error) {
	name, port, err := net.SplitHostPort(s)
	if err == nil && port == "" {
		return "", errPort
	}
	if err != nil {
		name = s
		if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, ":") {
			name = s[1 : len(s)-1]
		}
	}
	key, err := hostKey(name, port, "")
	if strings.HasSuffix(key, ":80") || strings.HasSuffix(key, ":443") {
		return "", errors.New("leave out :80 and :443: a host's key has a port only where it is not the scheme's default")
	}
	return key, err
}

// KeyPattern returns the pattern of a limit entry as keys are spelled: a name,
// or "*" and what the names end with.
func KeyPattern(kind limits.Kind, s string) (string, error) {
	suffix, wild := strings.CutPrefix(s, "*")
	switch {
	case strings.Contains(suffix, "*"):
		return "", errors.New("want * only at the start")
	case kind != limits.Host || suffix == "":
		return parseName(s)
	case !wild:
		return HostTag(s)
	}
	// The suffix need not begin where a label does; a letter makes it a name.
	key, err := HostTag("x" + suffix)
	return "*" + strings.TrimPrefix(key, "x"), err
}

// hostKey leaves out the port that is standard.
func hostKey(name, port, standard string) (string, error) {
	name, err := hostName(name)
	if err != nil || port == "" {
		return name, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errPort
	}
	if port = strconv.FormatUint(n, 10); port == standard {
		return name, nil
	}
	return name + ":" + port, nil
}

// hostName returns a host's name or address as keys spell it.
func hostName(s string) (string, error) {
	if isPlainHost(s) && !strings.Contains("."+s+".", "..") {
		return s, nil // as nearly all are
	}
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return "", errHost
		}
		return "[" + addr.String() + "]", nil
	}
	// The HTTP client maps names beyond ASCII in the same way.
	if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		var err error
		if s, err = idna.Lookup.ToASCII(s); err != nil {
			return "", errHost
		}
	}
	s = strings.TrimSuffix(s, ".")
	if strings.Contains("."+s+".", "..") || strings.ContainsFunc(s, notInHost) {
		return "", errHost
	}
	return strings.ToLower(s), nil
}

// isPlainHost reports whether all characters stand for themselves in a host's name.
func isPlainHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return s != ""
}

// notInHost reports a character that no host's name may hold. A name may be a
// tag of the user's own, so more is let pass than DNS has.
func notInHost(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("/\\:*?#@%[]<>\"^`{|}", r)
}
