package call

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentlimit/jobspec"

	"github.com/google/go-cmp/cmp"
)

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// hangUp closes a request's connection, after writing text to it.
func hangUp(w http.ResponseWriter, text string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		io.WriteString(c, text)
		c.Close()
	}
}

func TestHTTPOutcomes(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		drip := func(status int) {
			w.Header().Set("Content-Length", "20000")
			w.WriteHeader(status)
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		switch r.URL.Path {
		case "/ok":
			io.WriteString(w, "hello")
		case "/missing":
			w.WriteHeader(404)
			io.WriteString(w, `{"message":"not here"}`)
		case "/moved":
			w.Header().Set("Location", "/ok")
			w.WriteHeader(302)
		case "/nothing":
			w.WriteHeader(204)
		case "/head":
			w.Header().Set("Content-Length", "500")
		case "/short":
			hangUp(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+strings.Repeat("x", 50))
		case "/short500":
			hangUp(w, "HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\n"+strings.Repeat("x", 50))
		case "/hangup":
			io.Copy(io.Discard, r.Body)
			hangUp(w, "")
		case "/junk":
			hangUp(w, "220 mail.example.com ESMTP\r\n")
		case "/hang":
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case "/drip":
			drip(200)
		case "/drip429":
			drip(429)
		case "/bytes":
			w.Write([]byte{0xff, 0, 0xfe, 'A'})
		}
	})
	body := func(pattern string) func(*jobspec.Job) {
		return func(j *jobspec.Job) { j.Expect.Body = regexp.MustCompile(pattern) }
	}
	quick := timeout(200 * time.Millisecond)
	tests := []struct {
		name   string
		job    *jobspec.Job
		kind   Kind
		code   string
		sent   bool
		status int // 0: no answer
		body   string
	}{
		{"an answer is kept", httpJob("/ok"), OK, "", false, 200, "hello"},
		{"a body that matches is ok", httpJob("/ok", body("^h.l")), OK, "", false, 200, "hello"},
		{"a body that does not match is not", httpJob("/ok", body("^x")), Answered, "body", false, 200, "hello"},
		{"a match is looked for beyond what is recorded", httpJob("/ok", body("llo$"), inline(2)), OK, "", false, 200, "he"},
		{"a status that is not expected fails, with its body", httpJob("/missing"), Answered, "status", false, 404, `{"message":"not here"}`},
		{"a redirect is the result", httpJob("/moved"), Answered, "status", false, 302, ""},
		{"no content is ok at once", httpJob("/nothing"), OK, "", false, 204, ""},
		{"an answer to HEAD has a length but no body", httpJob("/head", method("HEAD")), OK, "", false, 200, ""},
		{"a short body is a lost answer", httpJob("/short"), Lost, "lost", true, 200, strings.Repeat("x", 50)},
		{"a short body behind a bad status is that status", httpJob("/short500"), Answered, "status", false, 500, strings.Repeat("x", 50)},
		{"a request without any answer is lost", httpJob("/hangup"), Lost, "lost", true, 0, ""},
		{"so is a POST", httpJob("/hangup", method("POST")), Lost, "lost", true, 0, ""},
		{"what is not HTTP is lost", httpJob("/junk"), Lost, "lost", true, 0, ""},
		{"silence is a timeout", httpJob("/hang", quick), Timeout, "timeout", true, 0, ""},
		{"a body that drips is a timeout", httpJob("/drip", quick), Timeout, "timeout", true, 200, "x"},
		{"a refusal whose body drips is that refusal", httpJob("/drip429", quick), Answered, "status", false, 429, "x"},
		{"bytes that are not text are base64", httpJob("/bytes"), OK, "", false, 200, "/wD+QQ=="},
		{"a bad header cannot be sent", httpJob("/ok", header("X-A", "a\nb")), Broken, "request", false, 0, ""},
		{"a bad method cannot be sent", httpJob("/ok", method("A B")), Broken, "request", false, 0, ""},
	}
	c := newClient(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.HTTP.URL = srv.URL + tt.job.HTTP.URL
			out := c.Call(t.Context(), Attempt{Job: tt.job})
			check(t, tt.job, out, tt.kind, tt.code, tt.sent)
			if took := out.Ended.Sub(out.Started); took > time.Second {
				t.Errorf("Call took %v", took)
			}
			switch {
			case (out.HTTP != nil) != (tt.status != 0):
				t.Errorf("Call: answer %+v, want status %d", out.HTTP, tt.status)
			case out.HTTP != nil && (out.HTTP.Status != tt.status || out.HTTP.Body != tt.body):
				t.Errorf("Call: answer %d %q, want %d %q", out.HTTP.Status, out.HTTP.Body, tt.status, tt.body)
			}
		})
	}
}

func TestHTTPUnreachable(t *testing.T) {
	c := newClient(t, Config{})
	for _, m := range []string{"GET", "POST"} {
		job := httpJob("http://"+closedAddress(t)+"/", method(m))
		check(t, job, c.Call(t.Context(), Attempt{Job: job}), Refused, "connect", false)
	}
	job := httpJob("http://no-such-host.invalid/")
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), Refused, "connect", false)
}

func TestHTTPRequestAsTyped(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	job := httpJob(strings.Replace(srv.URL, "http://", "http://u:p%40w@", 1)+"/p?q=1", method("PUT"),
		header("Accept", "a/b"), header("X-Many", "1.10"), header("X-Many", "no"), header("Host", "other.example"))
	job.HTTP.Body, job.HTTP.ContentType = []byte("{}"), "application/json"
	out := newClient(t, Config{}).Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	want := http.Header{
		"Accept": {"a/b"}, "X-Many": {"1.10", "no"}, "User-Agent": {"agentlimit"},
		"Content-Type": {"application/json"}, "Content-Length": {"2"},
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("u:p@w"))},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers at the server (-want +got):\n%s", diff)
	}
	if got.Host != "other.example" || got.RequestURI != "/p?q=1" || string(body) != "{}" || got.Proto != "HTTP/1.1" {
		t.Errorf("at the server: host %q, target %q, body %q, %s", got.Host, got.RequestURI, body, got.Proto)
	}
	if out.HTTP.URL != srv.URL+"/p?q=1" {
		t.Errorf("recorded URL %q, want no user info", out.HTTP.URL)
	}
}

// A server that reads a request on a used connection and hangs up may have done
// what was asked. Nothing is sent a second time behind the limits' back.
func TestHTTPNeverResends(t *testing.T) {
	tests := []struct {
		name string
		edit func(*jobspec.Job)
	}{
		{"GET", method("GET")},
		{"HEAD", method("HEAD")},
		{"PUT", method("PUT")},
		{"POST with a key", func(j *jobspec.Job) {
			j.HTTP.Method, j.HTTP.Body = "POST", []byte("x")
			header("Idempotency-Key", "k-1")(j)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seen atomic.Int32
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				seen.Add(1)
				if r.URL.Path == "/hangup" {
					hangUp(w, "")
				}
			})
			c := newClient(t, Config{})
			for i := range 5 { // used connections, several of them
				t.Run("", func(t *testing.T) {
					job := httpJob(srv.URL + "/ok")
					check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: i}), OK, "", false)
				})
			}
			job, asked := httpJob(srv.URL+"/hangup", tt.edit), 0
			out := c.Call(t.Context(), Attempt{Job: job, Sending: func() error { asked++; return nil }})
			check(t, job, out, Lost, "lost", true)
			if seen.Load() != 6 || asked != 1 {
				t.Errorf("the server saw %d requests, Sending was called %d times; want 6 and 1", seen.Load(), asked)
			}
		})
	}
}

// Servers close idle connections when they like. Whatever the race, an attempt
// that says it was not sent was not seen, and none is seen twice.
func TestHTTPIdleConnectionsClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var mu sync.Mutex
	seen := map[string]int{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				n, _ := conn.Read(buf)
				mu.Lock()
				seen[strings.Fields(string(buf[:n]) + " - -")[1]]++
				mu.Unlock()
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") // keep-alive, it says
			}()
		}
	}()
	c := newClient(t, Config{})
	for i := range 500 {
		path := fmt.Sprint("/", i)
		job := httpJob("http://" + l.Addr().String() + path)
		out := c.Call(t.Context(), Attempt{Job: job})
		mu.Lock()
		n := seen[path]
		mu.Unlock()
		switch {
		case out.Kind == OK && n == 1, out.Kind == Lost && out.Sent && n <= 1, out.Kind == Refused && !out.Sent && n == 0:
		default:
			t.Errorf("Call(%s) = %s, sent %v (%+v), but the server saw it %d times", path, out.Kind, out.Sent, out.Error, n)
		}
	}
}

func TestHTTPSending(t *testing.T) {
	var seen atomic.Int32
	srv := serve(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	c := newClient(t, Config{})
	job := httpJob(srv.URL, method("POST"))
	out := c.Call(t.Context(), Attempt{Job: job, Sending: func() error { return errors.New("disk full") }})
	check(t, job, out, Broken, "unsent", false)
	if seen.Load() != 0 {
		t.Error("a request was sent that Sending held back")
	}
	var before int32 = -1
	out = c.Call(t.Context(), Attempt{Job: job, Sending: func() error { before = seen.Load(); return nil }})
	check(t, job, out, OK, "", false)
	if before != 0 {
		t.Errorf("Sending found %d requests sent, want 0", before)
	}
	job = httpJob("http://" + closedAddress(t))
	out = c.Call(t.Context(), Attempt{Job: job, Sending: func() error { t.Error("Sending called without a connection"); return nil }})
	check(t, job, out, Refused, "connect", false)
}

func TestHTTPBodyWholeEachTime(t *testing.T) {
	type sent struct {
		length int64
		sum    [32]byte
		header string
	}
	var seen []sent
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, sent{r.ContentLength, sha256.Sum256(b), fmt.Sprint(r.Header)})
		if len(seen)%2 == 1 {
			w.WriteHeader(503)
		}
	})
	path := filepath.Join(t.TempDir(), "body")
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10/16)
	if err := os.WriteFile(path, big, 0o600); err != nil {
		t.Fatal(err)
	}
	inlineBody := func(j *jobspec.Job) { j.HTTP.Body = []byte("twenty bytes of text") }
	fileBody := func(j *jobspec.Job) { j.HTTP.BodyFile = path }
	c := newClient(t, Config{})
	for _, edit := range []func(*jobspec.Job){inlineBody, fileBody} {
		seen = nil
		job := httpJob(srv.URL, method("POST"), edit)
		check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: 1}), Answered, "status", false)
		check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: 2}), OK, "", false)
		want := sent{int64(len(big)), sha256.Sum256(big), seen[0].header}
		if job.HTTP.Body != nil {
			want.length, want.sum = int64(len(job.HTTP.Body)), sha256.Sum256(job.HTTP.Body)
		}
		if diff := cmp.Diff([]sent{want, want}, seen, cmp.AllowUnexported(sent{})); diff != "" {
			t.Errorf("two attempts (-want +got):\n%s", diff)
		}
	}
}

func TestHTTPBodyFileChanged(t *testing.T) {
	changes := []struct {
		name   string
		change func(path string) error
	}{
		{"is gone", os.Remove},
		{"has grown", func(path string) error { return os.WriteFile(path, []byte("longer"), 0o600) }},
		{"was written again", func(path string) error { return os.WriteFile(path, []byte("beta"), 0o600) }},
		{"was replaced", func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("beta"), 0o600), os.Rename(path+"2", path))
		}},
	}
	for _, tt := range changes {
		t.Run("the file "+tt.name, func(t *testing.T) {
			requests := 0
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) { requests++; w.WriteHeader(503) })
			path := filepath.Join(t.TempDir(), "body")
			old := time.Now().Add(-time.Hour)
			if err := errors.Join(os.WriteFile(path, []byte("alfa"), 0o600), os.Chtimes(path, old, old)); err != nil {
				t.Fatal(err)
			}
			job := httpJob(srv.URL, method("POST"), func(j *jobspec.Job) { j.HTTP.BodyFile = path })
			c := newClient(t, Config{})
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), Answered, "status", false)
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), Broken, "file", false)
			if requests != 1 {
				t.Errorf("%d requests, want 1", requests)
			}
		})
	}
}

func TestHTTPBodyFileChangesWhileSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "body")
	size := 8 << 20
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := make(chan bool, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 1<<10)
		os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600)
		_, err := io.Copy(io.Discard, r.Body)
		whole <- err == nil
	})
	job := httpJob(srv.URL, method("POST"), func(j *jobspec.Job) { j.HTTP.BodyFile = path })
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), Broken, "file", true)
	if <-whole {
		t.Error("the server got a mixed body whole")
	}
}

func TestHTTPConnectionsAreReused(t *testing.T) {
	var conns, requests atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader([]int{200, 404, 500}[requests.Add(1)%3])
		w.Write(make([]byte, 1024))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := newClient(t, Config{Concurrency: 20})
	parallel(20, 2000, func() {
		job := httpJob(srv.URL)
		if out := c.Call(t.Context(), Attempt{Job: job}); out.HTTP == nil {
			t.Errorf("Call = %+v", out.Error)
		}
	})
	if n := conns.Load(); n > 40 {
		t.Errorf("2000 requests, 20 at once, took %d connections", n)
	}
}

// parallel calls f n times from the given number of goroutines.
func parallel(workers, n int, f func()) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				f()
			}
		})
	}
	wg.Wait()
}

func TestHTTPBigAnswers(t *testing.T) {
	packed := bytes.Repeat([]byte{0x1f, 0x8b, 0, 1}, 1<<18)
	const streamed = 256 << 20
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed)
			return
		}
		for chunk, n := make([]byte, 1<<20), 0; n < streamed; n += len(chunk) {
			w.Write(chunk)
		}
	})
	c := newClient(t, Config{})
	var out Outcome
	job := httpJob(srv.URL + "/packed")
	out = c.Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	if h := out.HTTP; h.Encoding != "base64" || h.Body != base64.StdEncoding.EncodeToString(packed[:64<<10]) ||
		h.BodyBytes != int64(len(packed)) || !h.Truncated {
		t.Errorf("packed: %d characters of %q for %d bytes, truncated %v", len(h.Body), h.Encoding, h.BodyBytes, h.Truncated)
	}
	job = httpJob(srv.URL + "/streamed")
	used := allocated(func() { out = c.Call(t.Context(), Attempt{Job: job}) })
	check(t, job, out, OK, "", false)
	if h := out.HTTP; len(h.Body) != 64<<10 || h.BodyBytes != streamed || !h.Truncated {
		t.Errorf("streamed: %d of %d bytes, truncated %v", len(h.Body), h.BodyBytes, h.Truncated)
	}
	if used > 16<<20 {
		t.Errorf("reading %d MB allocated %d MB", streamed>>20, used>>20)
	}
}

func TestHTTPSave(t *testing.T) {
	var requests atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/ok":
			io.WriteString(w, "secret-value and more")
		case "/missing":
			w.WriteHeader(404)
		case "/short":
			hangUp(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
		}
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{})
	for _, p := range []string{"/missing", "/short"} {
		c.Call(t.Context(), Attempt{Job: httpJob(srv.URL+p, saveTo(path))})
		if got := readFile(t, path); got != "old" {
			t.Errorf("after %s the file holds %q, want it untouched", p, got)
		}
	}
	job := httpJob(srv.URL+"/ok", saveTo(path), inline(4), secrets("secret-value"))
	out := c.Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	if got := readFile(t, path); got != "secret-value and more" || out.HTTP.Saved != path || out.HTTP.Body != "***" {
		t.Errorf("saved %q in %q, recorded %q", got, out.HTTP.Saved, out.HTTP.Body)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Stat = %v, %v; want mode 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	requests.Store(0)
	job = httpJob(srv.URL+"/ok", saveTo(filepath.Join(dir, "no", "such")))
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), Broken, "file", false)
	if requests.Load() != 0 {
		t.Error("a request was sent whose answer had no place to go")
	}
}

func TestHTTPCancelIsPrompt(t *testing.T) {
	arrived := make(chan struct{}, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	for _, path := range []string{"/head", "/body"} {
		for name, stop := range map[string]func(*Client, context.CancelCauseFunc){
			"cancelled": func(_ *Client, cancel context.CancelCauseFunc) { cancel(ErrKill) },
			"closed":    func(c *Client, _ context.CancelCauseFunc) { c.Close() },
		} {
			c := newClient(t, Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan Outcome)
			job := httpJob(srv.URL + path)
			go func() { done <- c.Call(ctx, Attempt{Job: job}) }()
			<-arrived
			began := time.Now()
			stop(c, cancel)
			out := <-done
			check(t, job, out, Cancelled, "cancelled", true)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("%s %s took %v", path, name, took)
			}
			cancel(nil)
		}
	}
}

func TestHTTPUnsentTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by its backlog, but never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	job := httpJob("https://"+l.Addr().String(), timeout(100*time.Millisecond))
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), Timeout, "timeout", false)
}
