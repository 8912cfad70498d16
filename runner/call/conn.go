package call

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

const (
	// maxHead is how long the head of an answer may be, in bytes.
	maxHead = 1 << 20
	// aside is how long a body may be, in bytes, to be written before the answer is read.
	// A longer one might fill what lies between, while a server that has seen enough
	// waits for its answer to be read.
	aside = 8 << 10
	// windUp is how long the rest of a request may take once the answer is there.
	windUp = 50 * time.Millisecond
)

// A conn is a connection that carries one request after another, in the goroutine of the
// attempt that has it. net/http's own client is not used, since it may send a request a
// second time by itself, which no limit has admitted, and hands every one to two more
// goroutines, a quarter of all processor time. How requests are written and answers read
// is left to net/http (RFC 9112).
type conn struct {
	net.Conn // the top layer
	to       route
	socket   net.Conn // the lowest layer
	in       capped   // from Conn; set anew for each answer
	r        *bufio.Reader
	w        *bufio.Writer
	written  chan error // of the request under way
	taken    int64      // what Conn has taken of it, in bytes
	broken   bool       // Conn takes no more
	used     bool       // it has carried a request before
	idle     time.Time  // since when, if it is
}

func newConn(to route, socket, top net.Conn) *conn {
	c := &conn{Conn: top, to: to, socket: socket, written: make(chan error, 1)}
	c.r, c.w = bufio.NewReader(&c.in), bufio.NewWriter(c)
	return c
}

// Write counts what has left.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.taken += int64(n)
	c.broken = c.broken || err != nil
	return n, err
}

// abort ends what the connection does.
func (c *conn) abort() { c.SetDeadline(past) }

// An answer is what came back of a request.
type answer struct {
	*http.Response
	came time.Time // when its head was there
	cut  error     // why its body broke off; nil: it did not
}

// exchange sends req and reads the answer, its body into body. It reports whether c may
// carry another request. After an error, [conn.fail] says what it means.
func (c *conn) exchange(ctx context.Context, req *http.Request, body *capture) (_ *answer, again bool, _ error) {
	c.taken = 0
	stop := context.AfterFunc(ctx, c.abort)
	c.send(req)
	a, err := c.receive(req, body)
	whole := err == nil && a.cut == nil
	unsent := c.finish(whole)
	if err != nil && unsent != nil && !c.broken {
		err = &failure{Broken, "file", unsent} // of which net/http hides what it was
	}
	return a, stop() && whole && unsent == nil && !a.Close && c.r.Buffered() == 0, err
}

// finish returns how writing the request ended. What is still being written has little
// time left: the answer is there already, or, if that is not whole, will not come.
func (c *conn) finish(whole bool) error {
	select {
	case err := <-c.written:
		return err
	default:
	}
	if !whole {
		c.abort()
		return <-c.written
	}
	c.SetWriteDeadline(time.Now().Add(windUp))
	defer c.SetWriteDeadline(time.Time{})
	return <-c.written
}

// send writes req; its error comes by c.written. If the body cannot be read, that ends
// the exchange; if the connection takes no more, the answer may be there all the same.
func (c *conn) send(req *http.Request) {
	write := req.Write
	if c.to.server == "" {
		write = req.WriteProxy
	}
	all := func() {
		err := write(c.w)
		if err == nil {
			err = c.w.Flush()
		}
		if err != nil && !c.broken {
			c.abort()
		}
		c.written <- err
	}
	if req.ContentLength > aside {
		go all()
	} else {
		all()
	}
}

// receive reads an answer. Those before the last, which are about the request's way (RFC
// 9110, section 15.2), are passed over.
func (c *conn) receive(req *http.Request, body *capture) (*answer, error) {
	c.in = capped{r: c.Conn, left: maxHead}
	for {
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			return nil, cmp.Or(c.in.err, err) // the latter may be about the half that was read
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.in.left = math.MaxInt64
			a := &answer{Response: resp, came: time.Now()}
			a.cut = body.readAll(resp.Body)
			return a, nil
		}
	}
}

// errClosed ends an attempt whose connection was closed after the request was
// written and before an answer came.
var errClosed = fail(Lost, "lost", "the server closed the connection before it answered")

// fail says what it means that err came instead of an answer, and whether the
// other side may have seen the request.
func (c *conn) fail(ctx context.Context, err error) (sent bool, _ error) {
	sent = c.taken > 0
	switch {
	case errors.As(err, new(*failure)):
		return sent, err
	case !c.used && isAlert(err):
		// In TLS 1.3 the server's word on our certificate comes after we have
		// written, but it has not read that.
		return false, &failure{Broken, "tls", err}
	case ctx.Err() != nil:
		return sent, err
	case !sent:
		return false, &failure{Refused, "connect", err}
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return true, errClosed
	}
	return true, err
}

// capped is a reader with an end to what it may read, in bytes.
type capped struct {
	r    io.Reader
	left int64
	err  error // the last
}

var errLong = errors.New("the head of the answer is longer than 1 MiB")

func (c *capped) Read(p []byte) (n int, _ error) {
	c.err = errLong
	if c.left > 0 {
		n, c.err = c.r.Read(p[:min(int64(len(p)), c.left)])
		c.left -= int64(n)
	}
	return n, c.err
}
