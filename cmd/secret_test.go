//go:build unix

package cmd_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"

	"agentlimit/runner/results"
)

// planted are the secrets of a run, by where they come from. Their characters are
// such as escape differently in URLs, JSON and base64.
var planted = map[string]string{
	"env":      `tok 7$"/+<&>'\é=(x)~`,
	"file":     `file-secret/with+base64==`,
	"lines":    "-----BEGIN KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC/+\n", 4) + "-----END KEY-----",
	"typed":    "typed-PASSWORD-1",
	"query":    "typed-KEY-2+3",
	"user":     "typed_sk_live_4",
	"proxy":    "typed-PROXY-5",
	"more":     "typed-TICKET-6",
	"location": "typed-by-SERVER-7",
}

const (
	// pin is too short to be looked for in bodies.
	pin = "p1n7"
	// marker is in the environment, and no job names it.
	marker = "marker-of-the-environment"
)

// knows reports whether a request tells its server a secret.
func knows(r *http.Request, secret string) bool {
	var sent strings.Builder
	sent.WriteString(r.URL.RawQuery)
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		if credentials, basic := strings.CutPrefix(r.Header.Get(name), "Basic "); basic {
			plain, _ := base64.StdEncoding.DecodeString(credentials)
			sent.WriteString(" " + string(plain))
		}
	}
	return strings.Contains(sent.String(), secret) || strings.Contains(sent.String(), url.QueryEscape(secret))
}

// leaky is a server that gives back all that it should not.
func leaky(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var forms []string
		for name, s := range planted {
			if !strings.HasPrefix(s, "typed") || knows(r, s) {
				forms = append(forms, spelled(planted[name])...)
			}
		}
		all := strings.Join(forms, " | ")
		for i, form := range forms {
			w.Header().Set("X-Form-"+strconv.Itoa(i), form)
		}
		w.Header().Set("X-Pin", pin)
		what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		status, _ := strconv.Atoi(what)
		switch what {
		case "hangup":
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
			return
		case "garbage":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Write([]byte("SECRETS/1.1 " + strings.ReplaceAll(all, "\n", " ") + "\r\n\r\n"))
			c.Close()
			return
		case "badheader":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Write([]byte("HTTP/1.1 200 OK\r\n" + r.Header.Get("Authorization") + "\r\n\r\n"))
			c.Close()
			return
		case "moved":
			w.Header().Set("Location", "/next?token="+planted["location"]+"&back="+url.QueryEscape(r.URL.String()))
			status = http.StatusFound
		case "pause":
			w.Header().Set("RateLimit", `"`+planted["query"]+`";r=0;t=1;pk=:`+base64.StdEncoding.EncodeToString([]byte(planted["env"]))+`:`)
			status = http.StatusTooManyRequests
		}
		if status >= 100 {
			w.WriteHeader(status)
		}
		if rest == "pin" {
			w.Write([]byte(`{"error":{"message":"the key ` + pin + ` is used up"}}`))
			return
		}
		w.Write([]byte(all))
	}))
	t.Cleanup(s.Close)
	return s
}

// failing are jobs that fail in every way they can, with secrets wherever one may
// stand. PLAIN, TLS and GONE are addresses.
const failing = `
limits: {hosts: {"*": {concurrency: 4}}, accounts: {"*": {concurrency: 4}}}
defaults: {retry: {attempts: 2, max_wait: 3s, backoff: {initial: 10ms}}, timeout: 5s}
x-secrets: &secrets {Authorization: "Bearer ${env:TOK}", X-File: "${file:tok}", X-Pin: "${env:PIN}"}
jobs:
- {id: refused, http: {url: "http://u:typed-PASSWORD-1@GONE/x?api_key=typed-KEY-2%2B3&ticket=typed-TICKET-6", headers: *secrets}}
- {id: refused-user, http: {url: "http://typed_sk_live_4:@GONE/x", headers: *secrets}}
- {id: certificate, http: {url: "https://u:typed-PASSWORD-1@TLS/x?token=${env:TOK}", headers: *secrets}}
- {id: no-tls, http: {url: "https://u:typed-PASSWORD-1@PLAIN/x?token=${env:TOK}", headers: *secrets}}
- {id: hangup, http: {method: POST, body: "${file:lines}", url: "http://u:typed-PASSWORD-1@PLAIN/hangup", headers: *secrets}}
- {id: garbage, http: {url: "http://PLAIN/garbage", headers: *secrets}}
- {id: badheader, http: {url: "http://PLAIN/badheader", headers: *secrets}}
- {id: moved, http: {url: "http://u:typed-PASSWORD-1@PLAIN/moved?api_key=typed-KEY-2%2B3&ticket=typed-TICKET-6", headers: *secrets}}
- {id: moved-on, http: {url: "http://u:typed-PASSWORD-1@PLAIN/moved?api_key=typed-KEY-2%2B3&ticket=typed-TICKET-6", headers: *secrets, follow_redirects: 1}}
- {id: path, http: {url: "http://PLAIN/404/${env:TOK}/${file:tok}?x=${env:TOK}#${env:TOK}", headers: *secrets}}
- {id: user, http: {url: "http://typed_sk_live_4@PLAIN/401/u", headers: *secrets}}
- {id: json, http: {method: POST, url: "http://PLAIN/400", json: {a: "${env:TOK}", b: ["${file:lines}"]}}}
- {id: form, http: {method: POST, url: "http://PLAIN/500", form: {a: "${env:TOK}"}}}
- {id: used-up, account: a, http: {url: "http://PLAIN/429", headers: *secrets}}
- {id: used-up-pin, account: b, http: {url: "http://PLAIN/429/pin", headers: *secrets}}
- {id: forbidden-pin, account: b, http: {url: "http://PLAIN/403/pin", headers: *secrets}}
- {id: paused, account: c, http: {url: "http://PLAIN/pause?api_key=typed-KEY-2%2B3", headers: *secrets}, retry: {max_wait: 0s}}
- {id: timeout, timeout: 100ms, http: {url: "http://PLAIN/hang?key=${env:TOK}", headers: *secrets}}
- {id: cut, output: {inline: 2KiB}, http: {url: "http://PLAIN/200", headers: *secrets}}
- {id: matched, expect: {body_matches: "^nothing$"}, http: {url: "http://PLAIN/200", headers: *secrets}}
- {id: proxied, http: {url: "http://example.com/407", proxy: "http://p:typed-PROXY-5@PLAIN/", headers: *secrets}}
- {id: proxy-gone, http: {url: "http://example.com/407", proxy: "http://p:typed-PROXY-5@GONE/", headers: *secrets}}
- {id: tunnel, http: {url: "https://example.com/", proxy: "http://p:typed-PROXY-5@PLAIN/", headers: *secrets}}
- {id: no-file, http: {method: PUT, url: "http://PLAIN/", body_file: "${file:tok}/x"}}
- {id: no-ca, http: {url: "https://TLS/", tls: {ca_file: "${file:tok}"}}}
- {id: no-program, exec: {argv: ["./${env:TOK}", "${file:tok}"], env: {K: "${file:lines}"}}}
- {id: no-folder, exec: {argv: [echo], dir: "${env:TOK}"}}
- {id: no-input, exec: {argv: [cat], stdin_file: "${file:tok}"}}
- {id: echoes, exec: {shell: 'cat spelled; cat spelled >&2; exit 3'}}
- {id: echoes-bytes, exec: {shell: 'printf "\377"; cat spelled; printf "\377" >&2; cat spelled >&2; exit 3', env: {K: "${file:lines}"}}}
- {id: echoes-variables, exec: {shell: 'echo "$T $F $L"; printf %s "$L" | base64; exit 75', env: {T: "${env:TOK}", F: "${file:tok}", L: "${file:lines}"}}}
- {id: echoes-input, exec: {shell: 'tee /dev/stderr; exit 1', stdin: "${env:TOK} ${file:lines}"}}
- {id: dies, exec: {shell: 'cat spelled; kill -9 $$'}}
- {id: saved, output: {save: out/saved}, exec: {shell: "echo saved"}}
- {id: asks, host: h, account: d, retry: {max_wait: 0s}, exec: {shell: 'echo "retry-after: 1" >"$AGENTLIMIT_JOB_FEEDBACK"; cat spelled >>"$AGENTLIMIT_JOB_FEEDBACK"; exit 75'}}
- {id: "row-${item:n}", for_each: {values: [{n: 1, url: "http://u:typed-PASSWORD-1@GONE/x?api_key=typed-KEY-2%2B3"}]}, http: {url: "${item:url}"}, labels: {from: "${item:url}"}}
- {id: late, not_before: 1h, deadline: 1s, http: {url: "http://PLAIN/200?key=${env:TOK}", headers: *secrets}}
- {id: late-too, not_before: 1h, deadline: 1s, exec: {argv: [echo, "${env:TOK}", "${file:tok}"]}}
`

// secretFolder returns a folder with the files of the jobs, in which run starts
// agentlimit with the secrets in its environment.
func secretFolder(t *testing.T, s *httptest.Server) (dir string, start func(args ...string) *exec.Cmd) {
	t.Helper()
	dir = t.TempDir()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // who refuses its certificate
	tls.StartTLS()
	t.Cleanup(tls.Close)
	var echo strings.Builder
	for _, from := range []string{"env", "file", "lines"} {
		echo.WriteString(strings.Join(spelled(planted[from]), "\n") + "\n")
	}
	jobs := strings.NewReplacer("PLAIN", s.Listener.Addr().String(), "TLS", tls.Listener.Addr().String(), "GONE", nobody(t)).Replace(failing)
	for name, text := range map[string]string{"jobs.yaml": jobs, "tok": planted["file"] + "\n", "lines": planted["lines"] + "\n", "spelled": echo.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(args ...string) *exec.Cmd {
		c := exec.Command("agentlimit", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "TOK="+planted["env"], "PIN="+pin, "MARKER="+marker, "HTTP_PROXY=", "TERM=xterm", "CI=", "NO_COLOR=")
		return c
	}
}

// TestSecretsStayOut has jobs fail in every way they can, and looks for each secret
// in all that the run writes.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	s := leaky(t)
	for _, test := range []struct {
		about string
		args  []string
		tty   bool
	}{
		{"text", []string{"-v"}, false},
		{"JSON", []string{"-v", "--log-format", "json"}, false},
		{"a bar", []string{"-v", "--progress", "bar"}, true},
	} {
		t.Run(test.about, func(t *testing.T) {
			t.Parallel()
			dir, start := secretFolder(t, s)
			c := start(append([]string{"run", "jobs.yaml", "-o", "out.jsonl", "--hide-query", "ticket", "--summary", "sum.json", "--deferred-out", "later.json"}, test.args...)...)
			said, code := outputOf(t, c, test.tty)
			if code != 1 {
				t.Errorf("exit code %d, want 1:\n%s", code, said)
			}
			wantNoSecret(t, "what is said", said, shortToo(planted))
			wantSafeFiles(t, dir)
			ends := statuses(t, filepath.Join(dir, "out.jsonl"))
			if want := strings.Count(failing, "- {id"); len(ends) != want {
				t.Errorf("%d records, want %d", len(ends), want)
			}
			for id, status := range ends {
				want := results.Failed
				switch id {
				case "late", "late-too", "asks", "paused":
					want = results.Deferred
				case "hangup":
					want = results.Unknown
				case "saved", "cut", "moved-on":
					continue
				}
				if status != want && id != "moved-on" {
					t.Errorf("%s ended as %s, want %s", id, status, want)
				}
			}
		})
	}
}

// outputOf runs a command, in a terminal if asked to, and returns all that it says.
func outputOf(t *testing.T, c *exec.Cmd, tty bool) (string, int) {
	t.Helper()
	if !tty {
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		code := exitCodeOf(t, c)
		return said.String(), code
	}
	f, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	said, _ := io.ReadAll(f) // EIO: the other side is closed
	return string(said), exitCodeOf(t, c)
}

// shortToo adds what must not be in anything but a body.
func shortToo(secrets map[string]string) map[string]string {
	all := maps.Clone(secrets)
	all["short"], all["environment"] = pin, marker
	return all
}

// wantSafeFiles looks for secrets in the files that a run has written.
func wantSafeFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		text, secrets := string(data), shortToo(planted)
		switch d.Name() {
		case "jobs.yaml", "rows.yaml", "tok", "lines", "spelled", "saved":
			return err
		case "later.json": // it has what was typed, since it is to be run
			maps.DeleteFunc(secrets, func(name, secret string) bool { return strings.HasPrefix(secret, "typed") })
		case "out.jsonl":
			wantNoSecret(t, d.Name(), text, planted)
			text = regexp.MustCompile(`"(body|stdout|stderr)":"([^"\\]|\\.)*"`).ReplaceAllString(text, "")
		}
		wantNoSecret(t, d.Name(), text, secrets)
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", d.Name(), info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
