package runner

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// verdict is what becomes of a job after an attempt.
type verdict struct {
	status  results.Status // if it ends
	again   bool           // it may be tried again, after backoff
	backoff time.Duration
}

// judge decides what becomes of the job after its last attempt, already noted.
func (t *task) judge(o call.Outcome) verdict {
	v := verdict{status: results.Failed}
	switch o.Kind {
	case call.OK:
		return verdict{status: results.Succeeded}
	case call.Broken:
		return v
	case call.Cancelled:
		v.status = results.Interrupted
	case call.Answered:
		v.again = t.answerRepeats(o)
	case call.Refused: // nothing was sent
		v.again = true
	case call.Timeout:
		v.again = t.job.HTTP != nil
	case call.Lost:
		v.again = true
	}
	if o.Sent && !idempotent(t.job) && (t.job.HTTP != nil || o.Kind != call.Timeout) {
		return verdict{status: results.Unknown}
	}
	counted := len(t.attempts) - t.hinted - t.hops
	if o.Hint == nil && counted >= t.job.Retry.Attempts {
		v.again = false
	}
	if v.again {
		v.backoff = backoff(t.job.Retry, max(1, counted))
	}
	return v
}

// answerRepeats reports whether an answer that the job does not expect is worth
// another attempt. 425, 429 and 503 say that nothing was done, whatever the
// method (RFC 8470 section 5.2, RFC 6585 section 4, RFC 9110 section 15.6.4).
func (t *task) answerRepeats(o call.Outcome) bool {
	if o.Exec != nil {
		return o.Exec.Signal == "" && (o.Hint != nil || slices.Contains(t.job.Retry.OnExit, o.Exec.ExitCode))
	}
	status := o.HTTP.Status
	if status == 403 { // a limit if it says when to come back, else a refusal
		return o.Hint != nil
	}
	if o.Error != nil && o.Error.Kind == "body" || !slices.Contains(t.job.Retry.OnStatus, status) {
		return false
	}
	return status == 425 || status == 429 || status == 503 || idempotent(t.job)
}

// idempotent reports whether making the call twice does no more than making it
// once (RFC 9110 section 9.2.2), as far as anybody said.
func idempotent(job *jobspec.Job) bool {
	if job.Retry.Idempotent != nil {
		return *job.Retry.Idempotent
	}
	if job.HTTP == nil {
		return true
	}
	switch job.HTTP.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return slices.ContainsFunc(job.HTTP.Headers, func(h jobspec.Header) bool {
		return strings.EqualFold(h.Name, "Idempotency-Key")
	})
}

// backoff draws the wait after the n-th attempt: between half and the whole of
// a step that grows from r.Initial by r.Multiplier up to r.Max.
func backoff(r jobspec.Retry, n int) time.Duration {
	step := min(float64(r.Initial)*math.Pow(r.Multiplier, float64(n-1)), float64(r.Max))
	return time.Duration(step * (0.5 + rand.Float64()/2))
}
