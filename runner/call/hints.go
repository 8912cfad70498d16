package call

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hint is what a service said about when to come back.
type Hint struct {
	Source string        // the header field in lower case, or "feedback"
	Raw    string        // as written, without blanks around it, at most 200 bytes
	Wait   time.Duration // from the answer on; never negative, and at most 292 years however much was asked
}

const maxRaw = 200 // bytes

var (
	decimal = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)
	quoted  = regexp.MustCompile(`"([^"\\]|\\.)*"`)
)

// readHint returns what an answer that refuses a request says about when to come
// back, and nil if it says nothing that can be read. It looks at 403, 429 and 503
// alone. The first of these that can be read counts, whatever the others say:
//
//	Retry-After        seconds, decimals too, or a date (RFC 9110, section 10.2.3)
//	Retry-After-Ms     milliseconds
//	RateLimit          of the policy with the least left, if that is nothing or
//	                   the status is 429 (draft-ietf-httpapi-ratelimit-headers)
//	RateLimit-Reset    if the status is 429 or RateLimit-Remaining is 0 (the same
//	                   draft, to its sixth version)
//	X-RateLimit-Reset  if X-RateLimit-Remaining is 0
//
// Of several lines of a field the longest wait counts. Moments are measured
// against the answer's own Date, since it has the same clock, and against received
// only where that cannot be read. A moment that is past is a wait of 0.
func readHint(status int, h http.Header, received time.Time) *Hint {
	switch status {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return nil
	}
	now := received
	if date, err := http.ParseTime(strings.TrimSpace(h.Get("Date"))); err == nil {
		now = date
	}
	dateOrSeconds := func(s string) (time.Duration, bool) { return readRetryAfter(s, now) }
	reset := func(s string) (time.Duration, bool) { return readReset(s, now) }

	hint := cmp.Or(
		longest("retry-after", h.Values("Retry-After"), dateOrSeconds),
		longest("retry-after-ms", h.Values("Retry-After-Ms"), milliseconds),
		readRateLimit(status, h.Values("RateLimit")),
	)
	if hint == nil && (status == http.StatusTooManyRequests || isZero(h.Values("RateLimit-Remaining"))) {
		hint = longest("ratelimit-reset", h.Values("RateLimit-Reset"), reset)
	}
	if hint == nil && isZero(h.Values("X-RateLimit-Remaining")) {
		hint = longest("x-ratelimit-reset", h.Values("X-RateLimit-Reset"), reset)
	}
	return hint
}

// readFeedback returns what a command wrote about when to come back, in lines such
// as "retry-after: 2.5" (seconds; the name in any case), and nil if there is none
// that can be read. Of several the longest wait counts.
func readFeedback(text []byte) *Hint {
	var values []string
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(name), "retry-after") {
			values = append(values, value)
		}
	}
	return longest("feedback", values, seconds)
}

// longest returns the hint of the value that means the longest wait, and nil if
// none can be read.
func longest(source string, values []string, read func(string) (time.Duration, bool)) *Hint {
	var best *Hint
	for _, value := range values {
		wait, ok := read(strings.TrimSpace(value))
		if ok && (best == nil || wait > best.Wait) {
			best = newHint(source, value, wait)
		}
	}
	return best
}

func newHint(source, raw string, wait time.Duration) *Hint {
	return &Hint{Source: source, Raw: strings.ToValidUTF8(strings.TrimSpace(raw), "?"), Wait: wait}
}

// readRetryAfter reads seconds, or a date in any of the three forms of RFC 9110,
// section 5.6.7.
func readRetryAfter(s string, now time.Time) (time.Duration, bool) {
	if date, err := http.ParseTime(s); err == nil {
		return waitUntil(date, now), true
	}
	return seconds(s)
}

// readReset reads when a quota is renewed. Services write seconds from now,
// seconds since the epoch or milliseconds since the epoch into the same field.
// Ten digits are taken as epoch seconds and thirteen as epoch milliseconds (both
// from 2001 to 2286), any other number as seconds from now: a wait of ten digits
// would be 31 years and more.
func readReset(s string, now time.Time) (time.Duration, bool) {
	read, since := seconds, now
	whole, _, _ := strings.Cut(strings.TrimLeft(s, "0"), ".")
	switch len(whole) {
	case 10:
		since = time.Unix(0, 0)
	case 13:
		read, since = milliseconds, time.Unix(0, 0)
	}
	wait, ok := read(s)
	return waitUntil(since.Add(wait), now), ok
}

// readRateLimit reads lines such as
//
//	"hour";r=0;t=1200, "day";r=70;t=50000
//
// where r is what is left of a quota and t the seconds until it is renewed. Only
// the policy with the least left can be why the request was refused. Malformed
// policies are ignored. This is all that is needed of structured fields (RFC 9651),
// and unlike a whole parser it does not drop one policy for a fault in another.
func readRateLimit(status int, lines []string) *Hint {
	raw := strings.Join(lines, ", ") // means the same (RFC 9110, section 5.3)
	text := quoted.ReplaceAllLiteralString(raw, "name")
	if strings.Contains(text, `"`) {
		return nil // where a policy ends cannot be told
	}
	var best *Hint
	least := uint64(math.MaxUint64)
	for policy := range strings.SplitSeq(text, ",") {
		left, err := strconv.ParseUint(parameter(policy, "r"), 10, 64)
		if err != nil || left > least {
			continue
		}
		if left < least {
			best, least = nil, left
		}
		if wait, ok := seconds(parameter(policy, "t")); ok && (best == nil || wait > best.Wait) {
			best = newHint("ratelimit", raw, wait)
		}
	}
	if least > 0 && status != http.StatusTooManyRequests {
		return nil
	}
	return best
}

// parameter returns the value of a parameter of a structured field's item, the
// last one if it is doubled, and "" if there is none.
func parameter(item, name string) string {
	found := ""
	for part := range strings.SplitSeq(item, ";") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(part), name+"="); ok {
			found = value
		}
	}
	return found
}

func isZero(values []string) bool {
	return slices.ContainsFunc(values, func(s string) bool {
		n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return err == nil && n == 0
	})
}

func seconds(s string) (time.Duration, bool)      { return amount(s, "s") }
func milliseconds(s string) (time.Duration, bool) { return amount(s, "ms") }

// amount reads a number of digits and at most one dot. One that is too large for
// a Duration becomes the largest: it must never turn into a short wait.
func amount(s, unit string) (time.Duration, bool) {
	if !decimal.MatchString(s) {
		return 0, false
	}
	d, err := time.ParseDuration(s + unit)
	if err != nil { // what is left to be wrong is its size
		return math.MaxInt64, true
	}
	return d, true
}

// waitUntil is the wait from now to t; Sub keeps it within a Duration.
func waitUntil(t, now time.Time) time.Duration { return max(0, t.Sub(now)) }

// hint notes what a service said, secrets taken out before any cut.
func (t *attempt) hint(h *Hint) {
	if h != nil {
		h.Raw = t.line(h.Raw)
		h.Raw = strings.ToValidUTF8(h.Raw[:min(len(h.Raw), maxRaw)], "?")
	}
	t.out.Hint = h
}
