package runner

import (
	"net/url"

	"agentlimit/jobspec"
	"agentlimit/runner/call"
)

// redirect returns the job with its call turned to where the answer points, or
// nil if the answer is the result: no redirect, one too many, to another host,
// or from https to http. What a redirect does to method and body is RFC 9110
// section 15.4's: 303 asks for a GET, 301 and 302 turn a POST into one, 307 and
// 308 change nothing.
func (t *task) redirect(o call.Outcome) *jobspec.Job {
	if o.HTTP == nil || o.Location == "" || t.hops >= t.job.HTTP.FollowRedirects {
		return nil
	}
	from, err := url.Parse(t.job.HTTP.URL)
	if err != nil {
		return nil
	}
	to, err := from.Parse(o.Location)
	if err != nil || !sameHost(from, to) || from.Scheme == "https" && to.Scheme != "https" {
		return nil
	}
	to.User = from.User
	next, request := *t.job, *t.job.HTTP
	next.HTTP, request.URL = &request, to.String()
	switch o.HTTP.Status {
	case 301, 302:
		if request.Method == "POST" {
			asGet(&request)
		}
	case 303:
		if request.Method != "HEAD" {
			asGet(&request)
		}
	case 307, 308:
	default:
		return nil
	}
	return &next
}

func sameHost(a, b *url.URL) bool {
	x, err := jobspec.HostKey(a)
	if err != nil {
		return false
	}
	y, err := jobspec.HostKey(b)
	return err == nil && x == y
}

// asGet turns a request into a GET without a body.
func asGet(h *jobspec.HTTP) {
	h.Method, h.Body, h.BodyFile, h.ContentType = "GET", nil, "", ""
}
