package jobspec_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"agentlimit/jobspec"
)

// loadURL loads one job whose URL, or proxy, has an item with a value in it.
func loadURL(t *testing.T, key, template, value string) (*jobspec.Spec, error) {
	t.Helper()
	call := map[string]string{"url": "http://h/"}
	call[key] = template
	job := map[string]any{"for_each": map[string]any{"values": []string{value}}, "http": call}
	if strings.Contains(template, "job:id") {
		job["id"] = "${item:value}"
	}
	doc, _ := json.Marshal(map[string]any{
		"vars":       map[string]string{"base": "http://base.example", "prefixed": "https://base.example/v1", "slash": "https://base.example/v1/", "host": "h.example:8080", "tail": "-staging.example.com", "path": "/v2", "bad": "h/x"},
		"public_env": []string{"REGION"},
		"jobs":       []any{job},
	})
	return jobspec.Load(jobspec.Options{Document: doc, Env: environment})
}

// TestWhatLeadsAURL has values stand where a URL says where it leads: they may be what
// the text around them makes them, and nothing more.
func TestWhatLeadsAURL(t *testing.T) {
	for _, test := range []struct {
		about, url, item string
		want             string // the URL; empty: refused
	}{
		{"a whole URL", "${item:value}", "https://u:p@h:1/x?y#z", "https://u:p@h:1/x?y#z"},
		{"a host and all behind it", "http://${item:value}", "h/x?y", "http://h/x?y"},
		{"a base", "${item:value}/users", "http://h/v1", "http://h/v1/users"},
		{"a base of a var", "${var:prefixed}/users/${item:value}", "a/b", "https://base.example/v1/users/a%2Fb"},
		{"a part of a host", "http://api.${item:value}.example.com/", "eu-1.x", "http://api.eu-1.x.example.com/"},
		{"letters beyond ASCII", "http://${item:value}.example.com/", "münchen", "http://münchen.example.com/"},
		{"a user", "http://api.${item:value}.example.com/", "x@evil", ""},
		{"a path", "http://api.${item:value}.example.com/", "evil/", ""},
		{"a query", "http://api.${item:value}.example.com/", "evil?", ""},
		{"a fragment", "http://api.${item:value}.example.com/", "evil#", ""},
		{"a backslash", "http://api.${item:value}.example.com/", `evil\`, ""},
		{"a port", "http://api.${item:value}.example.com/", "evil:80", ""},
		{"an escape", "http://api.${item:value}.example.com/", "evil%2f", ""},
		{"white space", "http://api.${item:value}.example.com/", "a b", ""},
		{"a dot that is none in ASCII", "http://node${item:value}/", "1．evil．com", ""},
		{"nothing", "http://${item:value}api.example.com/", "", ""},
		{"a whole host", "http://${item:value}/x", "h:8080", "http://h:8080/x"},
		{"an address", "http://${item:value}/x", "[::1]:80", "http://[::1]:80/x"},
		{"a host with a path", "http://${item:value}/x", "h/y", ""},
		{"a host with a query", "http://${item:value}/x", "h?", ""},
		{"a host with a user", "http://${item:value}/x", "u@h", ""},
		{"a host in front of a port", "http://${item:value}:80/x", "h", "http://h:80/x"},
		{"a host with a port in front of a port", "http://${item:value}:80/x", "h:1", ""},
		{"a port", "http://h:${item:value}/", "8080", "http://h:8080/"},
		{"a port that is none", "http://h:${item:value}/", "80@evil", ""},
		{"a port that begins a path", "http://h:${item:value}/", "/x", ""},
		{"no port", "http://h:${item:value}/", "", ""},
		{"an address in brackets", "http://[${item:value}]:80/", "::1", "http://[::1]:80/"},
		{"an address that closes them", "http://[${item:value}]:80/", "::1]@evil", ""},
		{"a scheme", "${item:value}://h/", "https", "https://h/"},
		{"a scheme that brings a host", "${item:value}://h/", "http://evil/", ""},
		{"a scheme in two parts that bring a host", "${item:value}${var:path}://h/", "http:/", ""},
		{"a scheme typed in part", "http${item:value}://h/", "s", "https://h/"},
		{"a scheme typed in part that brings a host", "http${item:value}://h/", "://evil/", ""},
		{"what follows a scheme", "http:${item:value}", "//evil/", ""},
		{"what follows a slash", "http:/${item:value}", "/evil/", ""},
		{"a user, whose password is typed", "http://${item:value}:pw@h/", "a:b", "http://a:b:pw@h/"},
		{"a user that ends there", "http://${item:value}@h/", "u@evil/", ""},
		{"a user that begins a path", "http://${item:value}:pw@h/", "evil/", ""},
		{"a user and a host", "http://${item:value}${item:value}@h/", "evil#", ""},
		{"a host behind a user", "http://u:p@${item:value}/", "h:1", "http://u:p@h:1/"},
		{"a host behind a user that is one", "http://u:p@${item:value}/", "x@h", ""},
		{"the end of a name", "http://www.${item:value}/", "example.com", "http://www.example.com/"},
		{"the end of a name without dots", "http://node${item:value}:80/", "17", "http://node17:80/"},
		{"an end that makes a domain of a name", "http://node${item:value}:80/", ".evil.com", ""},
		{"an end that goes on with a domain", "http://api.example.co${item:value}/", "munity", ""},
		{"an end behind a base", "${var:base}${item:value}/", ".evil.com", ""},
		{"an end in front of a dot", "http://node${item:value}./", ".evil.com", ""},
		{"an end in two parts", "http://node${item:value}${item:value}/", ".com", ""},
		{"a user behind a base", "${var:base}${item:value}/", "@evil.com", ""},
		{"a path behind a base", "${var:base}${item:value}", "/users?x=1", "http://base.example/users?x=1"},
		{"a path behind a base and in front of more", "${var:base}${item:value}/x", "/users", "http://base.example/users/x"},
		{"a query behind a base and in front of more", "${var:base}${item:value}/x", "/users?", ""},
		{"a path behind a host, in front of its port", "http://h${item:value}:80/", "/x", ""},
		{"a path behind a host, in front of its end", "http://h${item:value}.example.com/", "/x", ""},
		{"a path behind a base with a path", "${var:prefixed}${item:value}", "/users", "https://base.example/v1/users"},
		{"the folder above, as a path behind a base with a path", "${var:prefixed}${item:value}", "/%2e%2E/admin", ""},
		{"a segment behind a base with a path", "${var:slash}${item:value}", "users", "https://base.example/v1/users"},
		{"two segments behind a base with a path", "${var:slash}${item:value}", "a/../b", ""},
		{"the folder above, behind a base with a path", "${var:slash}${item:value}", "..", ""},
		{"a query behind a base with a path", "${var:slash}${item:value}/x", "a?b", ""},
		{"an empty segment", "http://h/users/${item:value}", "", ""},
		{"an empty segment in front of more", "http://h/users/${item:value}/x", "", ""},
		{"an empty segment in front of a query", "${var:base}/users/${item:value}?x", "", ""},
		{"an empty segment in two parts", "http://h/users/${item:value}${item:value}", "", ""},
		{"an empty segment of a base", "${var:slash}${item:value}", "", ""},
		{"an empty part of a segment", "http://h/users/x${item:value}", "", "http://h/users/x"},
		{"an empty part of a segment, in front of the rest", "http://h/users/${item:value}.json", "", "http://h/users/.json"},
		{"an empty value of a query", "http://h/users/?q=${item:value}", "", "http://h/users/?q="},
		{"a job's id", "http://${job:id}.example.com/", "x", "http://x.example.com/"},
		{"a job's id that ends a host", "http://${job:id}.example.com/", "evil/", ""},
		{"a var", "http://${var:host}/${item:value}", "x", "http://h.example:8080/x"},
		{"a var at the end of a host", "http://api${var:tail}/${item:value}", "x", "http://api-staging.example.com/x"},
		{"a var that begins the path", "${var:base}${var:path}/${item:value}", "x", "http://base.example/v2/x"},
		{"a var with a path in place of a host", "http://${var:bad}/${item:value}", "x", ""},
		{"a public variable", "http://${env:REGION}.example/${item:value}", "x", "http://eu-north.example/x"},
		{"a secret as a password", "http://u:${env:TOKEN}@h/${env:TOKEN}?k=${env:TOKEN}", "x", "http://u:tok-1234567@h/tok-1234567?k=tok-1234567"},
		{"a secret password that leads elsewhere", "http://u:${env:SLASH}@h/", "x", ""},
		{"a secret as a host", "http://${env:TOKEN}/", "x", ""},
		{"a secret of which the host has a part", "http://${env:SLASH}.invalid/", "x", ""},
		{"a short secret within a host", "http://x.${env:SHORT}.example/", "x", ""},
		{"a secret with a host of its own", "${env:WEBHOOK}", "x", "https://hooks.example/T0K/x"},
		{"a secret without a scheme", "${env:SLASH}", "x", ""},
		{"a secret as the scheme", "${env:SHORT}://h/", "x", ""},
		{"a secret port", "http://h:${env:SHORT}/", "x", ""},
	} {
		for _, key := range []string{"url", "proxy"} {
			s, err := loadURL(t, key, test.url, test.item)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "jobs[0].http."+key+": ") || strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "tok-") || strings.Contains(err.Error(), "Part1") {
					t.Errorf("%s: item %q in %s %s: %v, want an error that does not show it", test.about, test.item, key, test.url, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: item %q in %s %s: %v", test.about, test.item, key, test.url, err)
				continue
			}
			j := drain(t, s)[0]
			got := map[string]string{"url": j.HTTP.URL, "proxy": j.HTTP.Proxy}[key]
			if key == "url" && got != test.want || key == "proxy" && !sameServer(got, test.want) {
				t.Errorf("%s: item %q makes %s of %s %s, want %s", test.about, test.item, got, key, test.url, test.want)
			}
		}
	}
}

func sameServer(a, b string) bool {
	u, _ := url.Parse(a)
	v, _ := url.Parse(b)
	return u.Scheme == v.Scheme && u.Host == v.Host && u.User.String() == v.User.String()
}

// TestNoItemLeadsElsewhere tries all short items that have a meaning in a URL.
func TestNoItemLeadsElsewhere(t *testing.T) {
	values := strings.Split(`/ ? # @ \ : [ ] % . x 1`, " ")
	for _, a := range values[:12] {
		for _, b := range values[:12] {
			values = append(values, a+b, "x"+a+b+"x")
		}
	}
	for template, want := range map[string]string{
		"http://api.${item:value}.example.com/users": `^http://api\.[x1.]+\.example\.com/users$`,
		"http://node${item:value}:80/users":          `^http://node[x1]+:80/users$`,
		"http://${item:value}/users":                 `^http://[x1.:]+/users$`,
		"http://u:${item:value}@h/users":             `^http://u:[^/?#@\\]+@h/users$`,
		"http${item:value}://h/users":                `^https?://h/users$`,
		"http:/${item:value}/users":                  `^$`,
		"${var:base}${item:value}/users":             `^http://base\.example/[^?#\\]*/users$`,
		"${var:prefixed}${item:value}/users":         `^https://base\.example/v1[^?#\\]*/users$`,
	} {
		fits := regexp.MustCompile(want)
		for _, value := range values {
			s, err := loadURL(t, "url", template, value)
			if err != nil {
				continue
			}
			if got := drain(t, s)[0].HTTP.URL; !fits.MatchString(got) {
				t.Errorf("item %q makes %s of %s, want %s", value, got, template, want)
			}
		}
	}
}
