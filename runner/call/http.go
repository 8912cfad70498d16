package call

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"weak"

	"golang.org/x/net/http/httpguts"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// request makes one attempt of a request.
func (c *Client) request(ctx context.Context, t *attempt, body *capture) error {
	req, err := newRequest(t.Job.HTTP)
	if err != nil {
		return err
	}
	if err := c.attachFile(req, t.Job.HTTP.BodyFile, cmp.Or(t.From, t.Job)); err != nil {
		return err
	}
	if req.Body != nil {
		defer req.Body.Close()
	}
	a, err := c.send(ctx, t, req, body)
	if err != nil {
		return err
	}
	t.hint(readHint(a.StatusCode, a.Header, a.came))
	if a.StatusCode/100 == 3 {
		t.out.Location = a.Header.Get("Location")
	}
	t.out.HTTP = t.answer(a.Response, body)
	t.out.HTTP.Truncated = t.out.HTTP.Truncated || a.cut != nil
	return t.judgeHTTP(body, a.cut)
}

// send finds a connection for req, exchanges it for an answer there, and keeps the
// connection for others if it can.
func (c *Client) send(ctx context.Context, t *attempt, req *http.Request, body *capture) (*answer, error) {
	to, err := routeOf(req, t.Job.HTTP)
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx, to)
	if err != nil {
		return nil, err
	}
	if err := t.sending(); err != nil {
		conn.Close()
		return nil, err
	}
	a, again, err := conn.exchange(ctx, req, body)
	if again && c.life.Err() == nil {
		c.idle.put(conn)
	} else {
		conn.Close()
	}
	if err != nil {
		t.out.Sent, err = conn.fail(ctx, err)
	}
	return a, err
}

// newRequest builds the request that h says, without a body from a file.
func newRequest(h *jobspec.HTTP) (*http.Request, error) {
	var body io.Reader
	if h.Body != nil {
		body = bytes.NewReader(h.Body)
	}
	req, err := http.NewRequest(h.Method, h.URL, body)
	if err != nil { // which may quote the URL
		return nil, fail(Broken, "request", "not a valid method or URL")
	}
	req.URL.RawQuery = strings.ReplaceAll(req.URL.RawQuery, " ", "%20") // which would end the target
	for _, line := range h.Headers {
		if !httpguts.ValidHeaderFieldName(line.Name) || !httpguts.ValidHeaderFieldValue(line.Value) {
			return nil, fail(Broken, "request", "not a valid header")
		}
		req.Header.Add(line.Name, line.Value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	setDefault(req.Header, "User-Agent", "agentlimit")
	setDefault(req.Header, "Content-Type", h.ContentType)
	if req.Header.Get("Authorization") == "" {
		authorize(req, "Authorization", req.URL.User)
	}
	return req, nil
}

func setDefault(h http.Header, name, value string) {
	if _, typed := h[name]; !typed && value != "" {
		h.Set(name, value)
	}
}

// answer records what came back, secrets taken out.
func (t *attempt) answer(resp *http.Response, body *capture) *results.HTTP {
	s := body.show(t.redactor, t.Job.Output.Inline)
	if resp.StatusCode/100 == 3 && s.encoding == "" { // such bodies repeat Location
		text := t.urls(s.text)
		s.text, s.redacted = text, s.redacted || text != s.text
	}
	said := ""
	if refused := resp.StatusCode == 403 || resp.StatusCode == 429; refused && s.encoding == "" {
		said = t.line(s.text)
	}
	return &results.HTTP{
		Said:      said,
		Status:    resp.StatusCode,
		URL:       t.url(resp.Request.URL),
		Headers:   t.headers(resp.Header),
		Body:      s.text,
		Encoding:  s.encoding,
		BodyBytes: body.total,
		Truncated: s.truncated,
		Redacted:  s.redacted,
	}
}

// judgeHTTP says whether an answer is what the job expects. A status that it
// does not expect is an answer even if the body behind it broke off (cut).
func (t *attempt) judgeHTTP(body *capture, cut error) (err error) {
	status, want := t.out.HTTP.Status, t.Job.Expect
	expected := slices.ContainsFunc(want.Status, func(r jobspec.StatusRange) bool {
		return r.Low <= status && status <= r.High
	})
	switch {
	case !expected && cut != nil:
		return fail(Answered, "status", "status %d, and its body broke off: %w", status, cut)
	case !expected:
		return fail(Answered, "status", "status %d", status)
	case cut != nil:
		t.out.Sent = true
		return fmt.Errorf("read body: %w", cut)
	case !t.matches(body):
		return fail(Answered, "body", "the body does not match %q", want.Body)
	}
	t.out.HTTP.Saved, err = body.commit(t.Job.Output.Save)
	return err
}

// A bodyFile is a file that is sent as a request's body: read from disk each
// time, so that its size costs no memory, and the same bytes each time, or the
// attempt fails. A part is handed out only if the file is still unchanged after
// it was read, so the server never gets a mixed body whole.
type bodyFile struct {
	f     *os.File
	first stamp // as the job's first attempt found it
}

// A stamp tells one content of a file from another.
type stamp struct{ size, changed int64 }

func stampOf(info os.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

// attachFile makes the file at path, if there is one, the body of req. Whether it is
// unchanged is asked of job. It has no
// GetBody: net/http sends it once.
func (c *Client) attachFile(req *http.Request, path string, job *jobspec.Job) error {
	if path == "" {
		return nil
	}
	f, info, err := openRegular(path)
	if err != nil {
		return cannot("file", "read body file", err)
	}
	b := &bodyFile{f, c.firstStamp(job, stampOf(info))}
	if err := b.check(); err != nil || b.first.size == 0 {
		f.Close()
		return err
	}
	req.Body, req.ContentLength = b, b.first.size
	return nil
}

// firstStamp returns what the first attempt of job found, which is now if this
// is it. It is forgotten with the job.
func (c *Client) firstStamp(job *jobspec.Job, now stamp) stamp {
	key := weak.Make(job)
	first, known := c.stamps.LoadOrStore(key, now)
	if !known {
		runtime.AddCleanup(job, func(key weak.Pointer[jobspec.Job]) { c.stamps.Delete(key) }, key)
	}
	return first.(stamp)
}

func (b *bodyFile) check() error {
	info, err := b.f.Stat()
	if err == nil && stampOf(info) != b.first {
		err = errors.New("it has changed since the first attempt began")
	}
	if err != nil {
		return fail(Broken, "file", "read body file: %w", err)
	}
	return nil
}

func (b *bodyFile) Read(p []byte) (int, error) {
	n, err := b.f.Read(p)
	if changed := b.check(); changed != nil {
		return 0, changed
	}
	return n, err
}

func (b *bodyFile) Close() error { return b.f.Close() }

// openRegular opens a file to read. Pipes and devices are refused: opening them
// may block, and a second attempt would find something else in them.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is not a regular file", path)
	}
	f, err := os.Open(path)
	return f, info, err
}
