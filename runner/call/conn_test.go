package call

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentlimit/jobspec"
)

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
		job := httpJob("http://"+l.Addr().String()+path, method([]string{"GET", "POST"}[i%2]))
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
