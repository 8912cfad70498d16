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

// HostKey returns the host key of an http or https URL: lower case, IDNA to
// ASCII, no trailing dot, no user info, the port only where it is not the
// scheme's default, IPv6 in brackets. An error never quotes the URL, which may
// hold secrets.
func HostKey(u *url.URL) (string, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("want a URL that begins with http:// or https://")
	}
	name, err := hostName(u.Hostname())
	if err != nil {
		return "", err
	}
	port, err := portNumber(u.Port())
	switch {
	case err != nil:
		return "", err
	case port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https":
		return name, nil
	}
	return name + ":" + port, nil
}

// HostTag returns the host key that a user names outright, such as "gpu-box",
// "API.example.com:8443" or "[::1]:8080". The ports 80 and 443 are refused: keys
// of URLs leave them out, so the two would never meet.
func HostTag(s string) (string, error) {
	name, port, err := net.SplitHostPort(s)
	switch {
	case err == nil && port == "":
		return "", errPort
	case err == nil:
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, ":"):
		name = s[1 : len(s)-1]
	default:
		name = s
	}
	if name, err = hostName(name); err != nil {
		return "", err
	}
	port, err = portNumber(port)
	switch {
	case err != nil:
		return "", err
	case port == "80" || port == "443":
		return "", errors.New("leave out :80 and :443: a host's key has a port only where it is not the scheme's default")
	case port == "":
		return name, nil
	}
	return name + ":" + port, nil
}

// KeyPattern returns the pattern of a limit entry as keys are spelled: a name,
// or "*" and what the names end with.
func KeyPattern(kind limits.Kind, s string) (string, error) {
	suffix, wild := strings.CutPrefix(s, "*")
	switch {
	case strings.Contains(suffix, "*"):
		return "", errors.New("want * only at the start")
	case kind != limits.Host || suffix == "":
		return s, checkName(s)
	case !wild:
		return HostTag(s)
	}
	// The suffix need not begin where a label does.
	dot := ""
	if suffix[0] == '.' || suffix[0] == ':' {
		dot, suffix = suffix[:1], suffix[1:]
	}
	if dot == ":" {
		port, err := portNumber(suffix)
		return "*:" + port, err
	}
	suffix, err := HostTag(suffix)
	return "*" + dot + suffix, err
}

var (
	errHost = errors.New("want a host name, such as api.example.com, gpu-box:8080 or [::1]")
	errPort = errors.New("want a port between 1 and 65535")
)

// hostName returns a host's name or address as keys spell it.
func hostName(s string) (string, error) {
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return "", errHost
		}
		return "[" + addr.String() + "]", nil
	}
	s = strings.TrimSuffix(s, ".")
	// The HTTP client maps names in the same way.
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(s)
			if err != nil {
				return "", errHost
			}
			s = strings.TrimSuffix(ascii, ".")
			break
		}
	}
	if strings.Contains("."+s+".", "..") || strings.ContainsFunc(s, notInHost) {
		return "", errHost
	}
	return strings.ToLower(s), nil
}

// notInHost reports a character that no host's name may hold. A name may be a
// tag of the user's own, so more is let pass than DNS has.
func notInHost(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("/\\:*?#@%[]<>\"^`{|}", r)
}

// portNumber returns a port without leading zeros, and "" for none.
func portNumber(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return "", errPort
	}
	return strconv.FormatUint(n, 10), nil
}
