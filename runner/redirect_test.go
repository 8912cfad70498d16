package runner_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

func TestRedirects(t *testing.T) {
	for _, row := range []struct {
		name, method, from string
		status             int
		location           string
		follow             int
		want               string // the last request; empty: the redirect is the result
	}{
		{"off by default", "GET", "http://h/a", 302, "/b", 0, ""},
		{"to the same host", "GET", "http://h/a", 302, "/b", 3, "GET http://h/b"},
		{"relative to the call", "GET", "http://h/a/x", 301, "y?q=1", 3, "GET http://h/a/y?q=1"},
		{"up to https", "GET", "http://h/a", 308, "https://h/a", 3, "GET https://h/a"},
		{"down to http", "GET", "https://h/a", 302, "http://h/a", 3, ""},
		{"to another host", "GET", "http://h/a", 302, "http://other/a", 3, ""},
		{"to another port", "GET", "http://h/a", 302, "http://h:81/a", 3, ""},
		{"303 asks for a GET", "PUT", "http://h/a", 303, "/b", 3, "GET http://h/b"},
		{"302 turns a POST into a GET", "POST", "http://h/a", 302, "/b", 3, "GET http://h/b"},
		{"302 leaves a PUT", "PUT", "http://h/a", 302, "/b", 3, "PUT http://h/b"},
		{"307 keeps method and body", "POST", "http://h/a", 307, "/b", 3, "POST http://h/b body"},
		{"304 is no redirect", "GET", "http://h/a", 304, "/b", 3, ""},
		{"a bad location", "GET", "http://h/a", 302, "http://[", 3, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := job(1, "h", "a")
				j.HTTP.Method, j.HTTP.URL, j.HTTP.FollowRedirects, j.Retry.Attempts = row.method, row.from, row.follow, 1
				if row.method == "POST" {
					j.HTTP.Body = []byte("body")
				}
				last := ""
				w := newWorld(rated(t, "1/s", 1), script(0, func(n int, a call.Attempt) call.Outcome {
					if n == 1 {
						return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: row.status}, Location: row.location}
					}
					if last = a.Job.HTTP.Method + " " + a.Job.HTTP.URL; a.Job.HTTP.Body != nil {
						last += " " + string(a.Job.HTTP.Body)
					}
					return fine
				}), j)
				began := time.Now()
				w.run(t, t.Context())
				if last != row.want {
					t.Errorf("followed to %q, want %q", last, row.want)
				}
				if row.want != "" && time.Since(began) != time.Second {
					t.Errorf("the hop came after %v, want it to pay its own token", time.Since(began))
				}
			})
		})
	}
}

func TestRedirectsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := job(1, "h", "a")
		j.HTTP.FollowRedirects = 5
		w := newWorld(caps(t, 1, 1), script(0, func(int, call.Attempt) call.Outcome {
			return call.Outcome{Kind: call.Answered, HTTP: &results.HTTP{Status: 302}, Location: "/again"}
		}), j)
		w.run(t, t.Context())
		if r := w.sink.records[0]; r.Status != results.Failed || len(r.Attempts) != 6 {
			t.Errorf("a circle: %s after %d attempts, want it failed after the call and five hops", r.Status, len(r.Attempts))
		}
	})
}
