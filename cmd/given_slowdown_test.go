package cmd_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// slack is how much later than asked a request may come: a pause ends up to a
// tenth late, and machines are busy. None may come early.
const slack = 750 * time.Millisecond

// ownBackoff is the line of a job file that makes a job's own waits short, from
// minBackoff to twice that.
const (
	ownBackoff = "defaults: {retry: {backoff: {initial: 100ms, max: 100ms}}}\n"
	minBackoff = 50 * time.Millisecond
)

// timeline is a server that notes when requests came and when it had answered.
type timeline struct {
	*visitors

	mu       sync.Mutex // guards what follows
	came     map[string][]time.Time
	answered map[string][]time.Time // when the answer was about to be sent
}

// observe starts a server that answers a path's nth request with status and raw
// header lines; a status of 0 is a plain 200.
func observe(t *testing.T, answer func(path string, nth int, now time.Time) (status int, lines, body string)) *timeline {
	t.Helper()
	s := &timeline{came: make(map[string][]time.Time), answered: make(map[string][]time.Time)}
	s.visitors = receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
		now := time.Now()
		s.mu.Lock()
		s.came[r.URL.Path] = append(s.came[r.URL.Path], now)
		s.mu.Unlock()
		status, lines, body := answer(r.URL.Path, nth, now)
		s.mu.Lock()
		s.answered[r.URL.Path] = append(s.answered[r.URL.Path], time.Now())
		s.mu.Unlock()
		if status != 0 {
			sendRaw(w, status, lines, body)
		}
	})
	return s
}

// sendRaw sends header lines as they are: net/http would trim their values.
func sendRaw(w http.ResponseWriter, status int, lines, body string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s",
		status, http.StatusText(status), len(body), lines, body)
}

// times returns when requests of a path came and were answered, in order.
func (s *timeline) times(path string) (came, answered []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.came[path]), slices.Clone(s.answered[path])
}

// field spells a header line.
func field(name, value string) string { return name + ": " + value + "\r\n" }

// slowAnswer is a first answer and the wait that it means.
type slowAnswer struct {
	name   string
	status int
	lines  func(now time.Time) string
	body   string
	wait   time.Duration // at least
}

// slowAnswers are all the ways to say it, junk among them, which means the job's
// own backoff.
func slowAnswers() (all []slowAnswer) {
	add := func(status int, wait time.Duration, body string, lines func(time.Time) string) {
		all = append(all, slowAnswer{fmt.Sprintf("a%d", len(all)), status, lines, body, wait})
	}
	always := func(lines string) func(time.Time) string { return func(time.Time) string { return lines } }
	retryAfter := func(value string) func(time.Time) string { return always(field("Retry-After", value)) }

	// A server's clock may be wrong: what counts is its own Date.
	for _, form := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		for _, status := range []int{429, 503} {
			for _, wrong := range []time.Duration{0, -time.Hour, time.Hour} {
				add(status, 2*time.Second, "", func(now time.Time) string {
					date := now.UTC().Add(wrong)
					return field("Date", date.Format(http.TimeFormat)) + field("Retry-After", date.Add(2*time.Second).Format(form))
				})
			}
		}
	}
	for value, wait := range map[string]time.Duration{
		"0.6": 600 * time.Millisecond, "1.5": 1500 * time.Millisecond, "  1  ": time.Second,
		"0": minBackoff, "-3": minBackoff, "soon": minBackoff, "": minBackoff, "NaN": minBackoff,
		"1\r\nRetry-After: 2": 2 * time.Second, "2\r\nRetry-After: 1": 2 * time.Second,
	} {
		add(429, wait, "", retryAfter(value))
	}
	in := func(now time.Time) string { return fmt.Sprint(now.Unix() + 1) }
	add(429, time.Second, "", always(field("Retry-After-Ms", "1000")))
	add(429, time.Second, "", always(field("RateLimit", `"d";r=0;t=1`)))
	add(429, time.Second, "", always(field("RateLimit-Reset", "1")))
	for _, status := range []int{403, 429, 503} {
		spent := field("X-RateLimit-Remaining", "0")
		add(status, time.Second, "", retryAfter("1"))
		add(status, time.Second, "", always(spent+field("X-RateLimit-Reset", "1")))
		add(status, time.Second, "", func(now time.Time) string {
			return field("Date", now.UTC().Format(http.TimeFormat)) + spent + field("X-RateLimit-Reset", in(now))
		})
		add(status, time.Second, "", func(now time.Time) string { // without a Date, in milliseconds
			return spent + field("X-RateLimit-Reset", fmt.Sprint(now.UnixMilli()+1001))
		})
	}
	// What a body says is not about seconds, or not about anything.
	add(429, time.Second, `{"retry_after":3000}`, retryAfter("1"))
	add(429, minBackoff, `{"retry_after":3000}`, always(""))
	return all
}

// However a service says when to come back, nobody comes earlier, and soon after.
func TestNobodyComesBackEarly(t *testing.T) {
	t.Parallel()
	rows := slowAnswers()
	s := observe(t, func(path string, nth int, now time.Time) (int, string, string) {
		for _, row := range rows {
			if nth == 1 && path == "/"+row.name {
				return row.status, row.lines(now), row.body
			}
		}
		return 0, "", ""
	})
	p := perform(t, s.URL, ownBackoff+`
limits: {global: {concurrency: 64}, hosts: {"*": {concurrency: 1}}}
jobs:
`+fill(len(rows), func(i int) string {
		return strings.ReplaceAll(`- {id: NAME, host: NAME, http: {url: "${var:base}/NAME"}}`, "NAME", rows[i].name)
	}))
	p.exits(t, 0)
	for _, row := range rows {
		what := fmt.Sprintf("%d %q %s", row.status, row.lines(time.Now()), row.body)
		if r := p.records[row.name]; r.Status != results.Succeeded || len(r.Attempts) != 2 {
			t.Errorf("%s: %s after %d tries, want it to succeed with the second", what, r.Status, len(r.Attempts))
			continue
		}
		came, answered := s.times("/" + row.name)
		if gap := came[1].Sub(answered[0]); gap < row.wait || gap > row.wait+slack {
			t.Errorf("%s: the next request came after %v, want %v", what, gap, row.wait)
		}
	}
}

// What is asked for too far ahead defers the job at once, for whoever runs it later.
func TestTooLongAWaitDefersAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, asked, job, reason string
		ahead                    time.Duration // of retry_at, as far as a Duration goes
	}{
		{"past what a clock can count", "9223372040", "", `^the server asked for \S+, more than max_wait 5m0s$`, math.MaxInt64},
		{"more than an integer can hold", "99999999999999999999", "", `^the server asked for \S+, more than max_wait 5m0s$`, math.MaxInt64},
		{"a day", "86400", "", `^the server asked for 24h0m0s, more than max_wait 5m0s$`, 24 * time.Hour},
		{"beyond the deadline", "30", "deadline: 10s, ", `^the server asked for 30s, (10|9\.\d+)s left$`, 30 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			later := filepath.Join(t.TempDir(), "deferred.json")
			s := observe(t, func(path string, _ int, _ time.Time) (int, string, string) {
				if path == "/asks" {
					return 503, field("Retry-After", row.asked), "later"
				}
				return 0, "", ""
			})
			p := performUntil(t, t.Context(), s.URL, `
limits: {hosts: {"*": {concurrency: 1}}}
jobs:
- {id: asks, host: asks, `+row.job+`http: {url: "${var:base}/asks"}}
- {id: fine, host: fine, http: {url: "${var:base}/fine"}}
`, "--deferred-out", later)
			p.exits(t, 75)
			want := map[string]end{
				"asks": {results.Deferred, 1, 503, "later", "status"},
				"fine": {results.Succeeded, 1, 200, "", ""},
			}
			if diff := cmp.Diff(want, p.ends()); diff != "" {
				t.Fatalf("ends (-want +got):\n%s", diff)
			}
			came, answered := s.times("/asks")
			r := p.records["asks"]
			if took := r.EndedAt.Sub(answered[0]); len(came) != 1 || took > time.Second {
				t.Errorf("%d requests, deferred %v after the answer; want one, and at once", len(came), took)
			}
			if h := r.Attempts[0].Hint; h == nil || h.Raw != row.asked {
				t.Errorf("hint %+v, want the raw value %s", h, row.asked)
			}
			if !regexp.MustCompile(row.reason).MatchString(r.Deferred.Reason) {
				t.Errorf("reason %q, want %s", r.Deferred.Reason, row.reason)
			}
			ahead := r.Deferred.RetryAt.Sub(answered[0])
			if ahead < row.ahead || ahead-row.ahead > time.Second+slack {
				t.Errorf("retry_at is %v ahead, want %v", ahead, row.ahead)
			}
			spec, err := jobspec.Load(jobspec.Options{Files: []string{later}, Vars: map[string]string{"base": s.URL}})
			if err != nil {
				t.Fatal(err)
			}
			if got := idsOf(t, spec.Source); !slices.Equal(got, []string{"asks"}) {
				t.Errorf("--deferred-out has the jobs %q, want the deferred one alone", got)
			}
		})
	}
}

// Tries stay bounded, whether the service asks for no wait at all or for nothing
// that can be read, and what is no refusal for now is sent once.
func TestRefusalsWithoutEnd(t *testing.T) {
	t.Parallel()
	const denied, hidden = `{"message":"not allowed"}`, `{"errors":[{"code":"SLOW_DOWN"}]}`
	s := observe(t, func(path string, _ int, _ time.Time) (int, string, string) {
		switch path {
		case "/zero":
			return 429, field("Retry-After", "0"), ""
		case "/junk":
			return 429, field("Retry-After", "soon"), ""
		case "/denied":
			return 403, "", denied
		}
		return 200, "", hidden
	})
	p := perform(t, s.URL, ownBackoff+`
limits: {hosts: {"*": {concurrency: 1}}}
jobs:
- {id: zero, host: a, http: {url: "${var:base}/zero"}}
- {id: junk, host: b, http: {url: "${var:base}/junk"}}
- {id: denied, host: c, http: {url: "${var:base}/denied"}}
- {id: hidden, host: d, http: {url: "${var:base}/hidden"}}
- {id: ruled, host: e, expect: {body_matches: '"data"'}, http: {url: "${var:base}/ruled"}}
`)
	p.exits(t, 1)
	want := map[string]end{
		"zero":   {results.Deferred, 11, 429, "", "status"},
		"junk":   {results.Failed, 4, 429, "", "status"},
		"denied": {results.Failed, 1, 403, denied, "status"},
		"hidden": {results.Succeeded, 1, 200, hidden, ""},
		"ruled":  {results.Failed, 1, 200, hidden, "body"},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	for id, e := range want {
		came, answered := s.times("/" + id)
		if len(came) != e.Tries {
			t.Errorf("%s was sent %d times, want %d", id, len(came), e.Tries)
		}
		for i := 1; i < len(came); i++ {
			if gap := came[i].Sub(answered[i-1]); gap < minBackoff {
				t.Errorf("%s: request %d came %v after the answer, want at least %v", id, i+1, gap, minBackoff)
			}
		}
	}
}

// A quota that is used up costs no job more than its attempts, the jobs wait
// beside each other, and another account is left alone.
func TestUsedUpQuota(t *testing.T) {
	t.Parallel()
	const why = `{"error":{"code":"plan_used_up","message":"no units left until the 1st"}}`
	s := observe(t, func(path string, _ int, _ time.Time) (int, string, string) {
		if strings.HasPrefix(path, "/poor") {
			return 429, "", why
		}
		return 0, "", ""
	})
	p := perform(t, s.URL, `
limits: {global: {concurrency: 20}, hosts: {"*": {concurrency: 4}}, accounts: {"*": {concurrency: 2}}}
defaults: {retry: {backoff: {initial: 200ms}}}
jobs:
`+fill(10, func(i int) string {
		return fmt.Sprintf(`- {id: poor%d, account: p, http: {url: "${var:base}/poor%[1]d"}}`, i)
	})+
		fill(3, func(i int) string {
			return fmt.Sprintf(`- {id: rich%d, account: q, http: {url: "${var:base}/rich%[1]d"}}`, i)
		}))
	p.exits(t, 1)
	var all []time.Time
	for id, got := range p.ends() {
		came, _ := s.times("/" + id)
		all = append(all, came...)
		want := end{results.Failed, 4, 429, why, "status"}
		if strings.HasPrefix(id, "rich") {
			want = end{results.Succeeded, 1, 200, "", ""}
		}
		if got != want || len(came) != want.Tries {
			t.Errorf("%s was sent %d times and ended as %+v, want %+v", id, len(came), got, want)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	if took, most := all[len(all)-1].Sub(all[0]), 1400*time.Millisecond; took > most+slack {
		t.Errorf("all of it took %v, want no more than the backoff of one job, %v", took, most)
	}
	for i := range 3 {
		if came, _ := s.times(fmt.Sprint("/rich", i)); came[0].Sub(all[0]) > slack {
			t.Errorf("rich%d of another account came after %v, want it at once", i, came[0].Sub(all[0]))
		}
	}
}

// One refusal stops all jobs of the account there, and nobody else's; afterwards
// they come at their rate.
func TestOneRefusalStopsAll(t *testing.T) {
	t.Parallel()
	var refused time.Time // read when the run is over
	s := observe(t, func(path string, nth int, _ time.Time) (int, string, string) {
		if path == "/x" && nth == 3 {
			refused = time.Now()
			return 429, field("Retry-After", "1"), ""
		}
		<-time.After(50 * time.Millisecond)
		return 0, "", ""
	})
	p := perform(t, s.URL, `
limits: {global: {concurrency: 20}, hosts: {x: {concurrency: 5, rate: 20/s}, y: {concurrency: 5, rate: 8/s}}}
jobs:
`+fill(20, func(i int) string {
		return fmt.Sprintf(`- {id: x%d, host: x, account: p, http: {url: "${var:base}/x"}}`, i)
	})+
		fill(5, func(i int) string { return fmt.Sprintf(`- {id: y%d, host: y, http: {url: "${var:base}/y"}}`, i) }))
	p.exits(t, 0)
	twice := 0
	var after []time.Time // admissions behind the pause
	for _, r := range p.inOrder {
		twice += len(r.Attempts) - 1
		for _, a := range r.Attempts {
			if a.Host == "x" && a.AdmittedAt.Sub(refused) >= time.Second {
				after = append(after, a.AdmittedAt.Time)
			}
		}
	}
	if twice != 1 {
		t.Errorf("%d attempts more than jobs, want the refused one alone tried again", twice)
	}
	x, _ := s.times("/x")
	y, _ := s.times("/y")
	resumed := x[len(x)-1]
	for _, at := range x {
		since := at.Sub(refused)
		if since > 300*time.Millisecond && since < time.Second { // those before were under way
			t.Errorf("a request came %v after the refusal, want none for 1 s", since)
		}
		if since >= time.Second && at.Before(resumed) {
			resumed = at
		}
	}
	if wait := resumed.Sub(refused); wait > time.Second+slack {
		t.Errorf("the account went on after %v, want 1 s", wait)
	}
	if last := y[len(y)-1]; !last.Before(resumed) {
		t.Errorf("the other host's last request came %v after the pause, want it before its end", last.Sub(resumed))
	}
	slices.SortFunc(after, time.Time.Compare)
	for i := 1; i < len(after); i++ {
		if gap := after[i].Sub(after[i-1]); gap < 49999*time.Microsecond {
			t.Errorf("two starts %v apart after the pause, want 50 ms", gap)
		}
	}
}

// What may have been done is not done twice, unless that does no harm.
func TestFates(t *testing.T) {
	t.Parallel()
	s := receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
		switch kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "-"); {
		case kind == "silent":
			<-r.Context().Done()
		case kind == "hangup":
			hangUp()
		case kind == "busy" && nth == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	job := func(id, more, request string) string {
		return fmt.Sprintf("- {id: %s, host: %[1]s, %shttp: {%s, url: \"${var:base}/%[1]s\"}}\n", id, more, request)
	}
	var jobs strings.Builder
	for _, method := range []string{"POST", "GET"} {
		for _, kind := range []string{"silent", "hangup", "busy"} {
			jobs.WriteString(job(kind+"-"+method, "", "method: "+method))
		}
		jobs.WriteString(fmt.Sprintf("- {id: nobody-%s, http: {method: %[1]s, url: \"http://%s/\"}}\n", method, nobody(t)))
	}
	jobs.WriteString(job("silent-key", "", "method: POST, headers: {Idempotency-Key: k-1}"))
	jobs.WriteString(job("silent-mark", "retry: {idempotent: true}, ", "method: POST"))
	p := perform(t, s.URL, `
limits: {hosts: {"*": {concurrency: 1}}}
defaults: {timeout: 300ms, retry: {backoff: {initial: 20ms}}}
jobs:
`+jobs.String())
	p.exits(t, 1)
	want := map[string]end{
		"silent-POST": {results.Unknown, 1, 0, "", "timeout"},
		"hangup-POST": {results.Unknown, 1, 0, "", "lost"},
		"busy-POST":   {results.Succeeded, 2, 200, "", ""},
		"nobody-POST": {results.Failed, 4, 0, "", "connect"},
		"silent-GET":  {results.Failed, 4, 0, "", "timeout"},
		"hangup-GET":  {results.Failed, 4, 0, "", "lost"},
		"busy-GET":    {results.Succeeded, 2, 200, "", ""},
		"nobody-GET":  {results.Failed, 4, 0, "", "connect"},
		"silent-key":  {results.Failed, 4, 0, "", "timeout"},
		"silent-mark": {results.Failed, 4, 0, "", "timeout"},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	for id, e := range want {
		if n := len(s.visits("/" + id)); !strings.HasPrefix(id, "nobody") && n != e.Tries {
			t.Errorf("%s was sent %d times, want %d", id, n, e.Tries)
		}
	}
	for i, v := range s.visits("/silent-key") {
		if key := v.header.Get("Idempotency-Key"); key != "k-1" {
			t.Errorf("try %d came with the key %q, want k-1", i+1, key)
		}
	}
}

// A secret never reaches another host, nor the same one without TLS: there the
// redirect is the result.
func TestSecretsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	const token = "s3cret-of-the-account"
	b := receive(t, func(http.ResponseWriter, *http.Request, int) {})
	elsewhere := strings.Replace(b.URL, "127.0.0.1", "localhost", 1) + "/b"
	a := receive(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/away-post":
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/there":
			io.WriteString(w, "arrived")
		}
	})
	safe := httptest.NewTLSServer(http.RedirectHandler(b.URL+"/b", http.StatusFound))
	t.Cleanup(safe.Close)
	secrets := fmt.Sprintf(`headers: {Authorization: "Bearer %s", Cookie: c=1, X-Api-Key: %[1]s}, follow_redirects: 5`, token)
	p := perform(t, a.URL, fmt.Sprintf(`
limits: {hosts: {"*": {concurrency: 2}}}
jobs:
- {id: away, http: {url: "${var:base}/away", %[1]s}}
- {id: away-post, http: {method: POST, body: secret, url: "${var:base}/away-post", %[1]s}}
- {id: downgrade, http: {url: "%[2]s/", tls: {insecure: true}, %[1]s}}
- {id: here, http: {url: "${var:base}/here", %[1]s}}
`, secrets, safe.URL))
	p.exits(t, 1)
	for id, want := range map[string]end{
		"away":      {results.Failed, 1, 302, "", "status"},
		"away-post": {results.Failed, 1, 307, "", "status"},
		"downgrade": {results.Failed, 1, 302, "", "status"},
		"here":      {results.Succeeded, 2, 200, "arrived", ""},
	} {
		got := p.ends()[id]
		if want.Body == "" {
			got.Body = "" // a redirect's own page
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		if at := p.records[id].Attempts[0].Location; at == "" {
			t.Errorf("%s: no location in the record, want where the redirect points", id)
		}
	}
	if n := len(b.visits("/b")); n != 0 {
		t.Errorf("the other host had %d requests, want none", n)
	}
	if v := a.visits("/there"); len(v) != 1 || v[0].header.Get("X-Api-Key") != token {
		t.Errorf("on its own host the redirect came as %+v, want the job's headers", v)
	}
}
