package jobspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

func TestTextsStayAsTyped(t *testing.T) {
	for _, test := range []struct{ about, typed, want string }{
		{"a word that YAML 1.1 takes for a boolean", "no", "no"},
		{"another", "on", "on"},
		{"a third", "true", "true"},
		{"an octal number", "0123", "0123"},
		{"no octal number", "0898", "0898"},
		{"more digits than a float has", "12345678901234567890", "12345678901234567890"},
		{"an exponent", "1e3", "1e3"},
		{"an underscore", "1_000", "1_000"},
		{"a date", "2024-01-02", "2024-01-02"},
		{"a final zero", "1.10", "1.10"},
		{"infinity", ".inf", ".inf"},
		{"a base of sixty", "1:30", "1:30"},
		{"an explicit tag", "!!str 0123", "0123"},
		{"a tag that makes null a text", "!!str ~", "~"},
		{"null in quotes", "'null'", "null"},
		{"dollar signs", "k7$USER-9", "k7$USER-9"},
		{"doubled dollar signs", "a$$b", "a$$b"},
		{"a literal reference", "'$${env:TOKEN}'", "${env:TOKEN}"},
		{"a shell's spelling", "'${HOME} ${x:-y} ${file} ${ENV:x}'", "${HOME} ${x:-y} ${file} ${ENV:x}"},
		{"a brace that nothing closes", "'${'", "${"},
		{"a reference within what is none", "'${x:-${var:base}}'", "${x:-b}"},
		{"dollars in front of a literal", "'$$${x}'", "$${x}"},
	} {
		j := one(t, "id: "+test.typed+", account: "+test.typed+", labels: {y: "+test.typed+"}, exec: {argv: [echo, "+test.typed+"], env: {off: "+test.typed+"}}")
		got := []string{j.ID, j.Account, j.Labels["y"], j.Exec.Argv[1], j.Exec.Env[0].Value}
		if want := []string{test.want, test.want, test.want, test.want, test.want}; !cmp.Equal(want, got) {
			t.Errorf("%s: %s arrives as %q", test.about, test.typed, got)
		}
		if j.Exec.Env[0].Name != "off" {
			t.Errorf("key off arrives as %q", j.Exec.Env[0].Name)
		}
	}
	if got := one(t, `http: {url: "http://h/", headers: {A: yes, B: 1.10}}`).HTTP.Headers; !cmp.Equal(got, []jobspec.Header{{Name: "A", Value: "yes"}, {Name: "B", Value: "1.10"}}) {
		t.Errorf("headers = %v", got)
	}
	jobs := jobsOf(t, "j.jsonl", `{"id":12345678901234567890,"account":1.10,"http":{"url":"http://h/"}}`)
	if jobs[0].ID != "12345678901234567890" || jobs[0].Account != "1.10" {
		t.Errorf("JSON numbers for texts arrive as %q, %q", jobs[0].ID, jobs[0].Account)
	}
}

func TestJSONBody(t *testing.T) {
	for _, test := range []struct{ about, typed, want string }{
		{"keys and digits are kept", `{z: 1.10, a: 12345678901234567890}`, `{"z":1.10,"a":12345678901234567890}`},
		{"what RFC 8259 spells", `[null, true, false, 0, -1, 1e3, 0.5E-2]`, `[null,true,false,0,-1,1e3,0.5E-2]`},
		{"what only YAML spells", `[~, yes, Null, TRUE, 0123, 0x1f, 1_000, .5, +1, .inf, 2024-01-02]`, `["~","yes","Null","TRUE","0123","0x1f","1_000",".5","+1",".inf","2024-01-02"]`},
		{"quoted texts", `["1", 'true', "null", ""]`, `["1","true","null",""]`},
		{"an explicit tag", `[!!str 1]`, `["1"]`},
		{"a key that is a word", `{y: n, 1: 2}`, `{"y":"n","1":2}`},
		{"characters to escape", `["\"\\\n\u2028</a>"]`, `["\"\\\n` + "\u2028" + `</a>"]`},
		{"references, which change no shape", `["${env:TRICKY}", "a\"${var:base}"]`, `["${var:base}","a\"b"]`},
		{"a reference is always a text", `${var:base}`, `"b"`},
		{"nothing in it", `[{}, []]`, `[{},[]]`},
	} {
		if strings.HasPrefix(test.typed, "$") {
			test.typed = `"` + test.typed + `"`
		}
		h := one(t, `http: {url: "http://h/", json: `+test.typed+`}`).HTTP
		if got := string(h.Body); got != test.want || h.ContentType != "application/json" {
			t.Errorf("%s: json: %s is sent as %s (%s), want %s", test.about, test.typed, got, h.ContentType, test.want)
		}
	}
	j := jobsOf(t, "j.jsonl", `{"http":{"url":"http://h/","json":{"b":1.0,"a":[true,null,"1"]}}}`)[0]
	if got := string(j.HTTP.Body); got != `{"b":1.0,"a":[true,null,"1"]}` {
		t.Errorf("JSON in JSON Lines is sent as %s", got)
	}
}

func TestFormBody(t *testing.T) {
	h := one(t, `http: {url: "http://h/", form: {q: "a b&c", empty: "", many: [1, "${var:base}"]}}`).HTTP
	if got := string(h.Body); got != "q=a+b%26c&empty=&many=1&many=b" || h.ContentType != "application/x-www-form-urlencoded" {
		t.Errorf("form is sent as %s (%s)", got, h.ContentType)
	}
}

func TestTimes(t *testing.T) {
	for _, test := range []struct {
		typed string
		want  time.Duration
	}{{"30s", 30 * time.Second}, {"1.5m", 90 * time.Second}, {"1d", 24 * time.Hour}, {"1h30m", 90 * time.Minute}, {`"250ms"`, 250 * time.Millisecond}, {"none", 0}} {
		if got := one(t, "timeout: "+test.typed+", "+get).Timeout; got != test.want {
			t.Errorf("timeout: %s is %v, want %v", test.typed, got, test.want)
		}
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		typed string
		want  jobspec.When
	}{
		{"2030-01-02T03:04:05Z", jobspec.When{At: at, Set: true}},
		{"2030-01-02T05:04:05+02:00", jobspec.When{At: at, Set: true}},
		{"15m", jobspec.When{After: 15 * time.Minute, Set: true}},
		{"none", jobspec.When{}},
	} {
		j := one(t, "deadline: "+test.typed+", not_before: "+test.typed+", "+get)
		for _, got := range []jobspec.When{j.Deadline, j.NotBefore} {
			if got.Set != test.want.Set || got.After != test.want.After || !got.At.Equal(test.want.At) {
				t.Errorf("%s is %+v, want %+v", test.typed, got, test.want)
			}
		}
	}
	if got := one(t, "retry: {max_wait: 0s}, "+get).Retry.MaxWait; got != 0 {
		t.Errorf("max_wait: 0s is %v", got)
	}
}

func TestLimitsAsUnderstood(t *testing.T) {
	s, err := load(t, "jobs.yaml", `
limits:
  hosts:
    a: {rate: 0.5/s}
    b: {rate: 1/2s, burst: 3}
    c: {rate: 600/h}
    "*.Example.org.": {concurrency: 8}
    x.example.org: {concurrency: none, rate: 200/s}
    "[::1]:8080": {concurrency: 1}
    "*": {concurrency: 2}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host        string
		concurrency int64
		rate        string
		burst       int64
	}{
		{"a", 2, "30/m", 1}, {"b", 2, "30/m", 3}, {"c", 2, "10/m", 1}, {"y.example.org", 8, "none", 0},
		{"x.example.org", 0, "200/s", 4}, {"[::1]:8080", 1, "none", 0}, {"[::1]:8081", 2, "none", 0},
	} {
		got := s.Limits.For(limits.Key{Kind: limits.Host, Name: test.host})
		if got.Concurrency != test.concurrency || got.Rate.String() != test.rate || got.Burst != test.burst {
			t.Errorf("limit of %s = %+v (%v), want %+v", test.host, got, got.Rate, test)
		}
	}
}

func TestFieldsAsUnderstood(t *testing.T) {
	j := one(t, `expect: {status: [2xx, 404], body_matches: "^ok"}, output: {inline: 1MiB, save: "out/${job:id}"}, id: x, retry: {idempotent: true, on_status: [500]}, http: {method: POST, url: "https://u@H.example.COM.:443/p", follow_redirects: 3, proxy: "socks5://p:1", tls: {ca_file: ca, insecure: true}}`)
	want := []jobspec.StatusRange{{Low: 200, High: 299}, {Low: 404, High: 404}}
	if !cmp.Equal(j.Expect.Status, want) || !j.Expect.Body.MatchString("ok") || j.Output != (jobspec.Output{Inline: 1 << 20, Save: "out/x"}) ||
		!*j.Retry.Idempotent || !cmp.Equal(j.Retry.OnStatus, []int{500}) || j.Host != "h.example.com" ||
		j.HTTP.FollowRedirects != 3 || j.HTTP.Proxy != "socks5://p:1" || j.HTTP.TLS != (jobspec.TLS{CAFile: "ca", Insecure: true}) {
		t.Errorf("job = %+v, http = %+v", j, j.HTTP)
	}
	for typed, want := range map[string]int64{"0": 0, "100": 100, "64KiB": 65536, "2kB": 2000, "1MB": 1e6, "3B": 3} {
		if got := one(t, "output: {inline: "+typed+"}, "+get).Output.Inline; got != want {
			t.Errorf("inline: %s is %d bytes, want %d", typed, got, want)
		}
	}
}

func TestFilesFromOtherSystems(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	lines := mark + `{"id":"a","http":{"url":"http://h/x"}}` + "\r\n\r\n" +
		`{"id":"b","http":{"url":"http://h/","headers":{"A":"b"}}}` + "\r\n" +
		`{"id":"c","exec":{"argv":["echo","end"]}}`
	document := mark + strings.ReplaceAll(`jobs:
- id: a
  http: {url: http://h/x}

- id: b
  http:
    url: http://h/
    headers:
      A: b
    body: |
      one
      	two
- id: c
  exec:
    argv:
    - echo
    - end`, "\n", "\r\n")
	for name, text := range map[string]string{"j.jsonl": lines, "jobs.yaml": document} {
		jobs := jobsOf(t, name, text)
		got := []string{jobs[0].HTTP.URL, jobs[1].HTTP.URL, jobs[1].HTTP.Headers[0].Value, jobs[2].Exec.Argv[1]}
		if want := []string{"http://h/x", "http://h/", "b", "end"}; !cmp.Equal(want, got) {
			t.Errorf("%s: values = %q, want %q", name, got, want)
		}
		if body := string(jobs[1].HTTP.Body); name == "jobs.yaml" && body != "one\n\ttwo\n" {
			t.Errorf("block text = %q", body)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	jobs := jobsOf(t, "jobs.yaml", `
x-a: &a {account: p, retry: {attempts: 2}, priority: 1}
x-b: &b {account: q, labels: {l: m}}
jobs:
- <<: *a
  retry: {attempts: 5}
  http: {url: http://h/1}
- http: {url: http://h/2}
  priority: 7
  <<: [*b, *a]
`)
	if j := jobs[0]; j.Account != "p" || j.Retry.Attempts != 5 || j.Priority != 1 {
		t.Errorf("own values win: %+v", j)
	}
	if j := jobs[1]; j.Account != "q" || j.Retry.Attempts != 2 || j.Priority != 7 || j.Labels["l"] != "m" {
		t.Errorf("the first of several wins: %+v", j)
	}
}
