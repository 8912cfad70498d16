//go:build unix

package cmd_test

import (
	"net/http"
	"testing"
	"time"

	"agentlimit/runner/results"
)

// A rate admits no burst that nobody asked for: not at the start, not after
// time without work.
func TestNoBurstThatNobodyAskedFor(t *testing.T) {
	evenly := func(n int, every time.Duration) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(i)*every)
		}
		return all
	}
	job := func(int) string { return `- {http: {url: "${var:base}/"}}` }
	for _, row := range []struct {
		name  string
		limit string
		jobs  string
		want  []time.Duration // the earliest admissions, after the first
	}{
		{"3 in a period are not 3 at once", "{rate: 3/600ms}", fill(7, job), evenly(7, 200*time.Millisecond)},
		{"unless a burst says so", "{rate: 3/600ms, burst: 3}", fill(7, job), append(make([]time.Duration, 2), evenly(5, 200*time.Millisecond)...)},
		{"60 in a period are not 60 at once", "{rate: 60/3s}", fill(20, job), evenly(20, 50*time.Millisecond)},
		{"time without work saves up no more than the burst", "{rate: 3/600ms}",
			`- {id: repeated, retry: {backoff: {initial: 900ms}}, http: {url: "${var:base}/again"}}` + "\n" +
				fill(4, func(int) string { return `- {not_before: 500ms, http: {url: "${var:base}/"}}` }),
			[]time.Duration{0, 300e6, 500e6, 700e6, 900e6, 1100e6}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
				if r.URL.Path == "/again" && nth == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			p := perform(t, s.URL, "limits: {global: {concurrency: 40}, hosts: {\"*\": "+row.limit+"}}\njobs:\n"+row.jobs)
			p.exits(t, 0)
			got := p.admissions()
			if n := len(s.visits("/")) + len(s.visits("/again")); len(got) != len(row.want) || n != len(got) {
				t.Fatalf("%d attempts, of which the server saw %d; want %d", len(got), n, len(row.want))
			}
			for i, want := range row.want {
				if after := got[i].Sub(got[0]); after < want || after > want+late {
					t.Errorf("admission %d came after %v, want %v", i, after, want)
				}
			}
		})
	}
}

// Jobs that wait for something hold up nobody who waits for something else.
func TestWaitingJobsBlockNobody(t *testing.T) {
	t.Run("a busy host and an idle one under one cap", func(t *testing.T) {
		t.Parallel()
		p := perform(t, "", `
limits: {global: {concurrency: 10}, hosts: {slow: {concurrency: 1}}}
jobs:
`+fill(20, func(int) string { return `- {host: slow, exec: {argv: [sleep, "0.05"]}}` })+
			fill(20, func(int) string { return `- {host: fast, exec: {argv: [sleep, "0.02"]}}` }))
		p.exits(t, 0)
		for _, r := range p.inOrder[30:] {
			if r.Host == "fast" {
				t.Errorf("%s of the idle host was one of the last to end: it was held up", r.ID)
			}
		}
	})
	t.Run("a slot is filled the moment it is free", func(t *testing.T) {
		t.Parallel()
		p := perform(t, "", `
limits: {hosts: {z: {concurrency: 4}}}
jobs:
- {id: long, host: z, exec: {argv: [sleep, "1"]}}
`+fill(8, func(int) string { return `- {host: z, exec: {argv: [sleep, "0.1"]}}` }))
		p.exits(t, 0)
		if last := p.inOrder[8].ID; last != "long" {
			t.Errorf("the last job to end is %q, want the long one", last)
		}
	})
	t.Run("a job in backoff", func(t *testing.T) {
		t.Parallel()
		s := receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
			if r.URL.Path == "/p" && nth == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		p := perform(t, s.URL, `
limits: {hosts: {"*": {concurrency: 1}}}
jobs:
- {id: first, account: p, retry: {backoff: {initial: 1s}}, http: {url: "${var:base}/p"}}
- {id: second, account: q, http: {url: "${var:base}/q"}}
`)
		p.exits(t, 0)
		again, second := p.records["first"].Attempts[1], p.records["second"].Attempts[0]
		if ahead := again.StartedAt.Sub(second.StartedAt.Time); ahead < 250*time.Millisecond {
			t.Errorf("the second job started %v before the first one's second try, want well before", ahead)
		}
	})
}

// What cannot start before its deadline is deferred as soon as that is certain,
// without a request.
func TestDeferredWhenCertain(t *testing.T) {
	t.Parallel()
	s := receive(t, func(http.ResponseWriter, *http.Request, int) {})
	p := perform(t, s.URL, `
limits: {hosts: {h: {rate: 1/s, burst: 1}}}
defaults: {host: h, deadline: 2500ms}
jobs:
- {id: a, http: {url: "${var:base}/"}}
- {id: b, http: {url: "${var:base}/"}}
- {id: c, http: {url: "${var:base}/"}}
- {id: d, http: {url: "${var:base}/"}}
- {id: e, http: {url: "${var:base}/"}}
`)
	p.exits(t, 75)
	first, third := p.records["a"].Attempts[0].AdmittedAt.Time, p.records["c"].Attempts[0].AdmittedAt.Time
	for i, id := range []string{"a", "b", "c"} {
		r := p.records[id]
		want := time.Duration(i) * time.Second
		if after := r.Attempts[0].StartedAt.Sub(first); r.Status != results.Succeeded || after < want || after > want+late {
			t.Errorf("%s: %s, started after %v, want %v", id, r.Status, after, want)
		}
	}
	for _, id := range []string{"d", "e"} {
		r := p.records[id]
		if r.Status != results.Deferred || r.Attempts != nil || r.Deferred == nil {
			t.Fatalf("%s: %+v, want it deferred without an attempt", id, r)
		}
		if after := r.EndedAt.Sub(first); after < 2*time.Second || after > 2500*time.Millisecond {
			t.Errorf("%s was deferred after %v, want 2 s, when it was certain", id, after)
		}
		d := r.Deferred
		if d.Key.String() != "host/h" || d.Reason != "host h: no token before the deadline" || d.RetryAt.Sub(third) != time.Second ||
			d.Deadline.Sub(first) > 2500*time.Millisecond {
			t.Errorf("%s: %+v, want host/h, no token, retry_at 1 s after %v", id, d, third)
		}
	}
	if n := len(s.visits("/")); n != 3 {
		t.Errorf("the server saw %d requests, want 3", n)
	}
}

// Permits are never certain: a job gets its chance when one comes free early.
func TestPermitsAreNeverCertain(t *testing.T) {
	t.Parallel()
	p := perform(t, "", `
limits: {hosts: {h: {concurrency: 1}}}
defaults: {host: h}
jobs:
- {id: fails-early, timeout: 10m, exec: {shell: sleep 0.6; exit 1}}
- {id: gets-its-chance, deadline: 3s, exec: {argv: ["true"]}}
- {id: too-late, deadline: 200ms, priority: -1, exec: {argv: ["true"]}}
`)
	p.exits(t, 1)
	if r := p.records["gets-its-chance"]; r.Status != results.Succeeded {
		t.Errorf("gets-its-chance: %+v, want it to have succeeded", r)
	}
	r := p.records["too-late"]
	if r.Status != results.Deferred || !r.Deferred.RetryAt.IsZero() || r.Deferred.Reason != "host h: no permit before the deadline" || r.Attempts != nil {
		t.Errorf("too-late: %+v, %+v, want it deferred for want of a permit, without a time to try again", r, r.Deferred)
	}
	if at := r.EndedAt.Sub(r.Deferred.Deadline.Time); at < 0 || at > 350*time.Millisecond {
		t.Errorf("too-late was deferred %v after its deadline, want at that moment", at)
	}
}

// A deadline that is past defers a job at once, however it is spelled.
func TestPastDeadlines(t *testing.T) {
	t.Parallel()
	s := receive(t, func(http.ResponseWriter, *http.Request, int) {})
	p := perform(t, s.URL, `
limits: {hosts: {"*": {concurrency: 2}}}
jobs:
- {id: past, deadline: 2020-01-02T03:04:05Z, http: {url: "${var:base}/"}}
- {id: elsewhere, deadline: 2020-01-02T03:04:05+02:00, http: {url: "${var:base}/"}}
- {id: not-yet, deadline: 1s, not_before: 1h, http: {url: "${var:base}/"}}
`)
	p.exits(t, 75)
	for id, reason := range map[string]string{
		"past": "the deadline had already passed", "elsewhere": "the deadline had already passed", "not-yet": "it may start only after the deadline",
	} {
		if r := p.records[id]; r.Status != results.Deferred || r.Deferred.Reason != reason || r.Attempts != nil {
			t.Errorf("%s: %+v, %+v, want it deferred: %s", id, r, r.Deferred, reason)
		}
	}
	if n := len(s.visits("/")); n != 0 {
		t.Errorf("the server saw %d requests, want none", n)
	}
}
