package call

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
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
			began := time.Now()
			out := c.Call(t.Context(), Attempt{Job: tt.job})
			check(t, tt.job, out, tt.kind, tt.code, tt.sent)
			if took := time.Since(began); took > time.Second {
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
			"cancelled": func(_ *Client, cancel context.CancelCauseFunc) { cancel(nil) },
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
			if took := time.Since(began); took > prompt {
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
