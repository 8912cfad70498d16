package jobspec_test

import (
	"net/url"
	"strings"
	"testing"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

var hostKeys = []struct{ about, url, want string }{
	{"lower case", "http://API.Example.COM/x", "api.example.com"},
	{"the scheme's port is left out", "https://h:443/", "h"},
	{"the other scheme's port is not", "http://h:443/", "h:443"},
	{"a port with zeros in front", "http://h:0080/", "h"},
	{"an empty port", "http://h:/", "h"},
	{"any other port", "http://h:8080", "h:8080"},
	{"user info is no part", "https://user:pw@h/", "h"},
	{"a trailing dot", "https://h.example./", "h.example"},
	{"letters beyond ASCII", "https://Bücher.example/", "xn--bcher-kva.example"},
	{"full-width letters", "https://ｈ.example/", "h.example"},
	{"an underscore", "http://my_service:81/", "my_service:81"},
	{"IPv4", "http://127.0.0.1:9001/", "127.0.0.1:9001"},
	{"IPv6", "http://[::1]/", "[::1]"},
	{"IPv6 spelled out", "http://[0:0:0:0:0:0:0:1]:8080/", "[::1]:8080"},
	{"IPv6 with a zone", "http://[fe80::1%25eth0]:81/", "[fe80::1%eth0]:81"},
	{"no host", "http:///x", ""},
	{"only a port", "http://:80/", ""},
	{"only a dot", "http://./", ""},
	{"an empty label", "http://a..b/", ""},
	{"two dots at the end", "http://0../", ""},
	{"a scheme that is not HTTP", "ftp://h/", ""},
	{"a port out of range", "http://h:65536/", ""},
	{"port zero", "http://h:0/", ""},
}

func TestHostKey(t *testing.T) {
	for _, test := range hostKeys {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jobspec.HostKey(u)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: HostKey(%s) = %q, %v, want %q", test.about, test.url, got, err, test.want)
		}
	}
}

func TestHostTag(t *testing.T) {
	for typed, want := range map[string]string{
		"gpu-box": "gpu-box", "GPU:8080": "gpu:8080", "[0::1]:81": "[::1]:81", "[::1]": "[::1]", "::1": "[::1]", "h.": "h", "1.2.3.4:5": "1.2.3.4:5",
		"": "", "0..": "", "a/b": "", "a b": "", "h:": "", "h:x": "", "h:80": "", "h:443": "", "[h]": "", "[::1": "", "a:b:c": "", "*": "", "u@h": "", ":81": "", "[": "", "]:1": "",
	} {
		got, err := jobspec.HostTag(typed)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("HostTag(%q) = %q, %v, want %q", typed, got, err, want)
		}
	}
}

func TestKeyPattern(t *testing.T) {
	for _, test := range []struct {
		kind        limits.Kind
		typed, want string
	}{
		{limits.Host, "*", "*"}, {limits.Host, "*.Example.ORG.", "*.example.org"}, {limits.Host, "*-api.h:81", "*-api.h:81"},
		{limits.Host, "*:8080", "*:8080"}, {limits.Host, "*.bücher.example", "*.xn--bcher-kva.example"}, {limits.Host, "H:81", "h:81"},
		{limits.Account, "Team A", "Team A"}, {limits.Account, "*@Example", "*@Example"}, {limits.Pool, "*", "*"},
		{limits.Host, "a.*", ""}, {limits.Host, "**", ""}, {limits.Host, "*.a:80", ""}, {limits.Account, "a*", ""}, {limits.Account, "a ", ""},
	} {
		got, err := jobspec.KeyPattern(test.kind, test.typed)
		if err == nil && got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("KeyPattern(%v, %q) = %q, %v, want %q", test.kind, test.typed, got, err, test.want)
		}
	}
}

func FuzzHostKey(f *testing.F) {
	for _, test := range hostKeys {
		f.Add(test.url)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		key, err := jobspec.HostKey(u)
		if err != nil {
			return
		}
		if key == "" || strings.ContainsAny(key, "/@ ") || strings.HasSuffix(key, ".") {
			t.Fatalf("HostKey(%q) = %q", s, key)
		}
		// A key is its own key, behind either scheme.
		for _, scheme := range []string{"http://", "https://"} {
			if strings.HasSuffix(key, ":80") || strings.HasSuffix(key, ":443") {
				continue
			}
			again, err := url.Parse(scheme + strings.Replace(key, "%", "%25", 1))
			if err != nil {
				t.Fatalf("HostKey(%q) = %q: %v", s, key, err)
			}
			if same, err := jobspec.HostKey(again); same != key || err != nil {
				t.Fatalf("HostKey(%q) = %q, and of that %q, %v", s, key, same, err)
			}
		}
		if tag, err := jobspec.HostTag(key); err == nil && tag != key {
			t.Fatalf("HostTag(%q) = %q", key, tag)
		}
	})
}
