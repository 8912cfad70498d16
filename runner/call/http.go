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
func (c *Client) request(ctx context.Context, t *attempt) error {
	save, err := newSaving(t.Job.Output.Save)
	if err != nil {
		return err
	}
	defer save.discard()
	file, err := c.openBody(t.Job)
	if err != nil {
		return err
	}
	defer file.close()
	transport, err := c.transport(t.Job.HTTP)
	if err != nil {
		return err
	}
	g := &gate{before: t.sending, cancel: t.cancel}
	req, err := newRequest(g.trace(ctx), t.Job.HTTP, file)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.out.Sent, err = g.fail(ctx, err)
		return err
	}
	defer resp.Body.Close()
	body := &capture{keep: t.keep(), save: save}
	cut := body.readAll(resp.Body)
	t.out.HTTP = t.answer(resp, body)
	t.out.HTTP.Truncated = t.out.HTTP.Truncated || cut != nil
	return t.judgeHTTP(body, cut)
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
func (t *attempt) answer(resp *http.Response, body *capture) *results.HTTP {
	s := body.show(t.redactor, t.Job.Output.Inline)
	if resp.StatusCode/100 == 3 && s.encoding == "" { // such bodies repeat Location
		text := t.urls(s.text)
		s.text, s.redacted = text, s.redacted || text != s.text
	}
	return &results.HTTP{
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
func (t *attempt) judgeHTTP(body *capture, cut error) error {
	status, want := t.out.HTTP.Status, t.Job.Expect
	switch {
	case !expected(want.Status, status) && cut != nil:
		return fail(Answered, "status", "status %d, and its body broke off: %w", status, cut)
	case !expected(want.Status, status):
		return fail(Answered, "status", "status %d", status)
	case cut != nil:
		t.out.Sent = true
		return fmt.Errorf("read body: %w", cut)
	case !t.matches(body):
		return fail(Answered, "body", "the body does not match %q", want.Body)
	}
	saved, err := body.save.commit()
	t.out.HTTP.Saved = saved
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
