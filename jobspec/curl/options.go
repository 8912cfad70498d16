package curl

import (
	"fmt"
	"slices"
	"strings"
)

// The options of curl that take a value, and those that take none, by their long names:
// without them nobody could tell a value from a URL.
var (
	valued = strings.Fields(`abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config
		connect-timeout connect-to continue-at cookie cookie-jar create-file-mode crlfile curves data data-ascii
		data-binary data-raw data-urlencode delegation dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url
		dump-header ech egd-file engine etag-compare etag-save expect100-timeout form form-string ftp-account
		ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip header
		hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway json keepalive-cnt keepalive-time key key-type krb
		libcurl limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time
		netrc-file noproxy oauth2-bearer output output-dir parallel-max pass pinnedpubkey preproxy proto proto-default
		proto-redir proxy proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header
		proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers
		proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file range rate
		referer request request-target resolve retry retry-delay retry-max-time sasl-authzid service-name socks4
		socks4a socks5 socks5-gssapi-service socks5-hostname speed-limit speed-time stderr telnet-option tftp-blksize
		time-cond tls-max tls13-ciphers tlsauthtype tlspassword tlsuser trace trace-ascii trace-config unix-socket
		upload-file url url-query user user-agent variable vlan-priority write-out`)
	switches = strings.Fields(`anyauth append basic ca-native cert-status compressed compressed-ssh create-dirs crlf
		digest disable disable-eprt disable-epsv disallow-username-in-url doh-cert-status doh-insecure fail fail-early
		fail-with-body false-start form-escape ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc
		ftp-ssl-control get globoff haproxy-protocol head http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3
		http3-only ignore-content-length include insecure ipv4 ipv6 junk-session-cookies list-only location
		location-trusted mail-rcpt-allowfails negotiate netrc netrc-optional next no-alpn no-buffer no-clobber
		no-keepalive no-npn no-progress-meter no-sessionid ntlm ntlm-wb parallel parallel-immediate path-as-is
		post301 post302 post303 progress-bar proxy-anyauth proxy-basic proxy-digest proxy-http2 proxy-insecure
		proxy-negotiate proxy-ntlm proxytunnel raw remote-header-name remote-name remote-name-all remote-time
		remove-on-error retry-all-errors retry-connrefused sasl-ir show-error show-headers silent skip-existing
		socks5-basic socks5-gssapi socks5-gssapi-nec ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd
		ssl-revoke-best-effort sslv2 sslv3 styled-output suppress-connect-headers tcp-fastopen tcp-nodelay
		tftp-no-options tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-ids trace-time use-ascii verbose xattr`)
	letters = map[byte]string{
		'#': "progress-bar", '0': "http1.0", '1': "tlsv1", '2': "sslv2", '3': "sslv3", '4': "ipv4", '6': "ipv6", ':': "next",
		'A': "user-agent", 'B': "use-ascii", 'C': "continue-at", 'D': "dump-header", 'E': "cert", 'F': "form", 'G': "get",
		'H': "header", 'I': "head", 'J': "remote-header-name", 'K': "config", 'L': "location", 'N': "no-buffer",
		'O': "remote-name", 'P': "ftp-port", 'Q': "quote", 'R': "remote-time", 'S': "show-error", 'T': "upload-file",
		'U': "proxy-user", 'X': "request", 'Y': "speed-limit", 'Z': "parallel", 'a': "append", 'b': "cookie",
		'c': "cookie-jar", 'd': "data", 'e': "referer", 'f': "fail", 'g': "globoff", 'i': "include",
		'j': "junk-session-cookies", 'k': "insecure", 'l': "list-only", 'm': "max-time", 'n': "netrc", 'o': "output",
		'p': "proxytunnel", 'q': "disable", 'r': "range", 's': "silent", 't': "telnet-option", 'u': "user", 'v': "verbose",
		'w': "write-out", 'x': "proxy", 'y': "speed-time", 'z': "time-cond",
	}
)

// carried are the options that have a place in a job. Those that do nothing here say
// what holds for jobs anyway.
var carried = map[string]func(r *request, value string){
	"request":        func(r *request, v string) { r.method = v },
	"header":         (*request).header,
	"data":           func(r *request, v string) { r.data("&", v, true) },
	"data-ascii":     func(r *request, v string) { r.data("&", v, true) },
	"data-binary":    func(r *request, v string) { r.data("&", v, false) },
	"data-raw":       func(r *request, v string) { r.addData("&", v) },
	"data-urlencode": (*request).dataEncoded,
	"json":           func(r *request, v string) { r.json = true; r.data("", v, false) },
	"form":           (*request).form,
	"form-string":    func(r *request, v string) { r.formText(v) },
	"get":            func(r *request, _ string) { r.get = true },
	"head":           func(r *request, _ string) { r.head = true },
	"upload-file":    func(r *request, v string) { r.upload = v; r.leave("%s: Expect: 100-continue", r.typed) },
	"user":           func(r *request, v string) { r.user = v },
	"oauth2-bearer":  func(r *request, v string) { r.bearer = v },
	"user-agent":     func(r *request, v string) { r.agent = &v },
	"referer":        (*request).referrer,
	"cookie":         (*request).cookie,
	"range":          func(r *request, v string) { r.preset("Range", "bytes="+v) },
	"proxy":          (*request).throughProxy,
	"insecure":       func(r *request, _ string) { r.tls = append(r.tls, "insecure: true") },
	"cacert":         func(r *request, v string) { r.tlsFile("ca_file", v) },
	"cert":           func(r *request, v string) { r.tlsFile("cert_file", v) },
	"key":            func(r *request, v string) { r.tlsFile("key_file", v) },
	"location":       func(r *request, _ string) { r.follow = true },
	"max-redirs":     func(r *request, v string) { r.redirects = v },
	"max-time":       func(r *request, v string) { r.timeout = v + "s" },
	"url":            func(r *request, v string) { r.urls = append(r.urls, v) },
	"url-query":      (*request).urlQuery,
	"globoff":        func(r *request, _ string) { r.globoff = true },
	"path-as-is":     func(r *request, _ string) { r.asIs = true },
	"output":         func(r *request, v string) { r.outputs = append(r.outputs, v) },
	"fail":           func(*request, string) {},
	"http1.1":        func(*request, string) {},
	"basic":          func(*request, string) {},
}

// read returns what a command asks for: several requests with --next.
func read(c command) (all []*request) {
	r := newRequest(c)
	words, options := c.words, true
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case !options || len(word) < 2 || word[0] != '-':
			r.urls = append(r.urls, word)
		case word == "--":
			options = false
		case word == "--next" || word == "-:":
			all = append(all, r)
			r = newRequest(c)
		case strings.HasPrefix(word, "--"):
			words = r.option(word, longName(word[2:]), words)
		default:
			words = r.cluster(word[1:], words)
		}
	}
	return append(all, r)
}

// cluster takes up options of one letter that stand together. The last of them may have
// its value behind it.
func (r *request) cluster(typed string, words []string) []string {
	for i := range len(typed) {
		name, letter := letters[typed[i]], "-"+typed[i:i+1]
		if rest := typed[i+1:]; rest != "" && slices.Contains(valued, name) {
			return r.option(letter, name, append([]string{rest}, words...))
		}
		words = r.option(letter, name, words)
	}
	return words
}

// longName returns the option that a long name or the beginning of one means; empty if
// that is not known.
func longName(typed string) (name string) {
	if slices.Contains(valued, typed) || slices.Contains(switches, typed) {
		return typed
	}
	for _, known := range slices.Concat(valued, switches) {
		if strings.HasPrefix(known, typed) {
			if name != "" {
				return ""
			}
			name = known
		}
	}
	return name
}

// option takes up an option, and its value from the words behind it, which it returns
// the rest of.
func (r *request) option(typed, name string, words []string) []string {
	value := ""
	if slices.Contains(valued, name) {
		if len(words) == 0 {
			r.broken = fmt.Errorf("%s is without a value", typed)
			return nil
		}
		value, words = words[0], words[1:]
	}
	r.typed = typed
	if do := carried[name]; do != nil {
		do(r, value)
	} else if name == "" {
		typed, _, _ = strings.Cut(typed, "=") // curl has no --option=value, and this may be a secret
		r.broken = fmt.Errorf("%s is unknown", typed)
	} else {
		r.leave("%s", typed)
	}
	return words
}
