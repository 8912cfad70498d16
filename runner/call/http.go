package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// userAgent is sent where the job has no such header.
const userAgent = "agentlimit"

// request makes one attempt of a request. It follows no redirect, keeps no
// cookie, and sends the request once at most.
func (c *Client) request(ctx context.Context, a Attempt, red *redactor, out *Outcome) error {
	save, err := newSaving(a.Job.Output.Save)
	if err != nil {
		return err
	}
	defer save.discard()
	file, err := c.openBody(a.Job)
	if err != nil {
		return err
	}
	defer file.close()
	transport, err := c.transport(a.Job.HTTP)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &gate{before: a.Sending, cancel: cancel}
	req, err := newRequest(g.trace(ctx), a.Job.HTTP, file)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		out.Sent, err = g.fail(ctx, err)
		return err
	}
	defer resp.Body.Close()
	body := &capture{keep: keep(a.Job, red), save: save}
	cut := body.readAll(resp.Body)
	out.HTTP = answer(resp, body, red, a.Job.Output.Inline)
	out.HTTP.Truncated = out.HTTP.Truncated || cut != nil
	return judgeHTTP(a.Job, body, cut, out)
}

// newRequest builds the request that h says. A file, if there is one, is its body.
func newRequest(ctx context.Context, h *jobspec.HTTP, file *fileBody) (*http.Request, error) {
	var body io.Reader
	if h.Body != nil {
		body = bytes.NewReader(h.Body)
	}
	req, err := http.NewRequestWithContext(ctx, h.Method, h.URL, body)
	if _, ok := errors.AsType[*url.Error](err); ok { // it quotes the URL
		return nil, fail(Broken, "request", "not a valid URL")
	}
	if err != nil {
		return nil, &failure{Broken, "request", err}
	}
	if file != nil {
		file.attach(req)
	}
	for _, line := range h.Headers {
		req.Header.Add(line.Name, line.Value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	setDefault(req.Header, "User-Agent", userAgent)
	if h.ContentType != "" {
		setDefault(req.Header, "Content-Type", h.ContentType)
	}
	if user := req.URL.User; user != nil && req.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	return req, nil
}

func setDefault(h http.Header, name, value string) {
	if _, typed := h[name]; !typed {
		h.Set(name, value)
	}
}

// answer records what came back, secrets taken out.
func answer(resp *http.Response, body *capture, red *redactor, inline int64) *results.HTTP {
	s := body.show(red, inline)
	if resp.StatusCode/100 == 3 && s.encoding == "" { // such bodies repeat Location
		text := string(red.urls([]byte(s.text)))
		s.text, s.redacted = text, s.redacted || text != s.text
	}
	return &results.HTTP{
		Status:    resp.StatusCode,
		URL:       red.url(resp.Request.URL),
		Headers:   red.headers(resp.Header),
		Body:      s.text,
		Encoding:  s.encoding,
		BodyBytes: body.total,
		Truncated: s.truncated,
		Redacted:  s.redacted,
	}
}

// judgeHTTP says whether an answer is what the job expects. A status that it
// does not expect is an answer even if the body behind it broke off (cut).
func judgeHTTP(job *jobspec.Job, body *capture, cut error, out *Outcome) error {
	status := out.HTTP.Status
	switch {
	case !expected(job.Expect.Status, status) && cut != nil:
		return fail(Answered, "status", "status %d, and its body broke off: %w", status, cut)
	case !expected(job.Expect.Status, status):
		return fail(Answered, "status", "status %d", status)
	case cut != nil:
		out.Sent = true
		return fmt.Errorf("read body: %w", cut)
	case !matches(job, body):
		return fail(Answered, "body", "the body does not match %q", job.Expect.Body)
	}
	saved, err := body.save.commit()
	out.HTTP.Saved = saved
	return err
}

func expected(ranges []jobspec.StatusRange, status int) bool {
	for _, r := range ranges {
		if r.Low <= status && status <= r.High {
			return true
		}
	}
	return false
}

// keep returns how many bytes of a stream are needed: what the record shows,
// what secrets may reach beyond that, and what is searched for a match.
func keep(job *jobspec.Job, red *redactor) int {
	n := int(job.Output.Inline) + red.slack()
	if job.Expect.Body != nil {
		n = max(n, matchLimit)
	}
	return n
}

// matches searches the first [matchLimit] bytes, or all that is shown if more.
func matches(job *jobspec.Job, c *capture) bool {
	if job.Expect.Body == nil {
		return true
	}
	limit := max(matchLimit, int(job.Output.Inline))
	return job.Expect.Body.Match(c.kept[:min(limit, len(c.kept))])
}
