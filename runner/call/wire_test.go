package call

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// scripted is a server that talks for itself on each connection, and counts them.
func scripted(t *testing.T, talk func(c net.Conn, r *bufio.Reader)) (url string, conns *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer c.Close()
				talk(c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String(), conns
}

// readRequest reads a request with its body, and reports whether there is one.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err == nil
}

func TestAnswersOnTheWire(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	tests := []struct {
		name   string
		answer string // to each request
		close  bool   // and the connection closed after it
		kind   Kind
		body   string
		says   string // the message
		conns  int32  // for two calls
	}{
		{"an answer with its length", ok, false, OK, "ok", "", 1},
		{"one in chunks, with a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n", false, OK, "ok", "", 1},
		{"one that ends with the connection", "HTTP/1.1 200 OK\r\n\r\nok", true, OK, "ok", "", 2},
		{"an old server's", "HTTP/1.0 200 OK\r\n\r\nok", true, OK, "ok", "", 2},
		{"one that announces the end", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false, OK, "ok", "", 2},
		{"one behind others about the way", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok, false, OK, "ok", "", 1},
		{"one with more behind it", ok + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", false, OK, "ok", "", 2},
		{"one that switches protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", true, Answered, "", "status 101", 2},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-Le", true, Lost, "", "the server closed the connection before it answered", 2},
		{"no end of a head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 1100), false, Lost, "", "the head of the answer is longer than 1 MiB", 2},
		{"no end of answers about the way", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50_000), false, Lost, "", "the head of the answer is longer than 1 MiB", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, conns := scripted(t, func(c net.Conn, r *bufio.Reader) {
				for readRequest(r) {
					if io.WriteString(c, tt.answer); tt.close {
						return
					}
				}
			})
			c := newClient(t, Config{})
			for range 2 {
				job := httpJob(url)
				out := c.Call(t.Context(), Attempt{Job: job})
				if out.Kind != tt.kind || out.HTTP != nil && out.HTTP.Body != tt.body || tt.says != "" && out.Error.Message != tt.says {
					t.Errorf("Call = %s, answer %+v, error %+v; want %s, %q, %q", out.Kind, out.HTTP, out.Error, tt.kind, tt.body, tt.says)
				}
			}
			if n := conns.Load(); n != tt.conns {
				t.Errorf("two calls took %d connections, want %d", n, tt.conns)
			}
		})
	}
}

// What comes on an idle connection was not asked for. It must not be taken for the answer
// of the next request.
func TestNobodyAskedForIt(t *testing.T) {
	late := make(chan bool)
	url, conns := scripted(t, func(c net.Conn, r *bufio.Reader) {
		for first := true; readRequest(r); first = false {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if first {
				<-late
				io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
				late <- true
			}
		}
	})
	c := newClient(t, Config{})
	job := httpJob(url)
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
	late <- true
	<-late
	go func() { late <- true; <-late }()
	check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: 2}), OK, "", false)
	if n := conns.Load(); n != 2 {
		t.Errorf("two calls took %d connections, want 2", n)
	}
}

// A server may know enough before it has the whole body. Its answer counts, whether it
// reads on, waits or hangs up.
func TestAnsweredBeforeTheWholeBody(t *testing.T) {
	const size = 32 << 20 // more than lies in between
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]func(*jobspec.Job){
		"of a file": func(j *jobspec.Job) { j.HTTP.BodyFile = path },
		"in memory": func(j *jobspec.Job) { j.HTTP.Body = bytes.Repeat([]byte("x"), size) },
	}
	for name, body := range bodies {
		for _, then := range []string{"reads on", "waits", "hangs up"} {
			t.Run("a body "+name+", and the server "+then, func(t *testing.T) {
				url, _ := scripted(t, func(c net.Conn, r *bufio.Reader) {
					http.ReadRequest(r)
					io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
					switch then {
					case "reads on":
						io.Copy(io.Discard, r)
					case "waits":
						<-t.Context().Done()
					case "hangs up":
						c.(*net.TCPConn).CloseWrite()
						io.CopyN(io.Discard, r, size/2)
					}
				})
				job := httpJob(url, method("POST"), body)
				out := newClient(t, Config{}).Call(t.Context(), Attempt{Job: job})
				check(t, job, out, Answered, "status", false)
				if out.HTTP == nil || out.HTTP.Status != 413 {
					t.Errorf("Call: answer %+v, want status 413", out.HTTP)
				}
			})
		}
	}
}

// A body that is written beside the reading of the answer leaves its connection fit for
// the next.
func TestConnectionIsReusedAfterALongBody(t *testing.T) {
	url, conns := scripted(t, func(c net.Conn, r *bufio.Reader) {
		for readRequest(r) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := newClient(t, Config{})
	job := httpJob(url, method("PUT"), func(j *jobspec.Job) { j.HTTP.Body = make([]byte, 200<<10) })
	for range 20 {
		check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("20 calls took %d connections, want 1", n)
	}
}

// Nothing of an attempt stays behind when it was cancelled in the middle of its body.
func TestCancelledWhileSending(t *testing.T) {
	url, _ := scripted(t, func(_ net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		<-t.Context().Done()
	})
	job := httpJob(url, method("PUT"), timeout(100*time.Millisecond), func(j *jobspec.Job) { j.HTTP.Body = make([]byte, 32<<20) })
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), Timeout, "timeout", true)
}

// A space would end the request's target.
func TestSpaceInAQuery(t *testing.T) {
	target := make(chan string, 1)
	url, _ := scripted(t, func(c net.Conn, r *bufio.Reader) {
		target <- strings.TrimSuffix(must(r.ReadString('\n')), "\r\n")
		for line := "-"; line != "\r\n"; {
			line = must(r.ReadString('\n'))
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	job := httpJob(url + "/a b?c=d e&f=é")
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), OK, "", false)
	if got := <-target; got != "GET /a%20b?c=d%20e&f=é HTTP/1.1" {
		t.Errorf("the request line is %q", got)
	}
}

func must(line string, _ error) string { return line }
