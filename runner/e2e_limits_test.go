package runner_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// TestServerIsNeverOver makes slow and failing calls: the server's own count is
// never above the caps, and the caps are made use of.
func TestServerIsNeverOver(t *testing.T) {
	for _, row := range []struct {
		name            string
		hosts, accounts []string
		full            map[string]int // what is under way at once at some moment
	}{
		{"two accounts use two slots each of a host", []string{"x"}, []string{"a", "b"}, map[string]int{"x": 4, "a": 2, "b": 2}},
		{"one account cannot sit on a host", []string{"x"}, []string{"a"}, map[string]int{"x": 2, "a": 2}},
		{"accounts are capped across hosts", []string{"x", "y"}, []string{"a", "b", "c"}, map[string]int{"a": 2, "b": 2, "c": 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, slowAndFailing)
			var js []*jobspec.Job
			for i := range 60 {
				js = append(js, s.job(i, row.hosts[i%len(row.hosts)], row.accounts[i/len(row.hosts)%len(row.accounts)]))
			}
			w := s.run(t, t.Context(), limitsOf(t, `{hosts: {"*": {concurrency: 4}}, accounts: {"*": {concurrency: 2}}}`), nil, js...)

			for _, host := range row.hosts {
				if got := s.peak(host); got > 4 {
					t.Errorf("the server had %d under way for host %s, want at most 4", got, host)
				}
			}
			for _, account := range row.accounts {
				if got := s.peak(account); got > 2 {
					t.Errorf("the server had %d under way for account %s, want at most 2", got, account)
				}
			}
			if !s.reached(row.full) {
				t.Errorf("the server never had %v under way at once", row.full)
			}
			if got, want := attempts(w.sink.records), len(s.visits); got != want || len(w.sink.byID(t)) != 60 {
				t.Errorf("%d attempts in %d records, want the %d that the server saw, in 60", got, len(w.sink.records), want)
			}
			checkFates(t, w.sink.byID(t))
		})
	}
}

// slowAndFailing answers by the number of the job, in ten ways.
func slowAndFailing(w http.ResponseWriter, r *http.Request, v *visit) {
	busy(30 * time.Millisecond)
	switch n := number(v.job); {
	case n%10 == 1 && v.nth == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	case n%10 == 3:
		w.WriteHeader(http.StatusInternalServerError)
	case n%10 == 5:
		w.WriteHeader(http.StatusNotFound)
	case n%10 == 7 && v.nth < 3:
		panic(http.ErrAbortHandler) // the connection is closed without an answer
	case n%10 == 9 && v.nth == 1:
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "short") // and closed within the answer
	case n%10 == 2:
		busy(100 * time.Millisecond)
	}
}

// checkFates wants the jobs to have ended as slowAndFailing had them.
func checkFates(t *testing.T, records map[string]results.Record) {
	t.Helper()
	for id, r := range records {
		status, tries := results.Succeeded, 1
		switch number(id) % 10 {
		case 1, 9:
			tries = 2
		case 3:
			status, tries = results.Failed, 3
		case 5:
			status = results.Failed
		case 7:
			tries = 3
		}
		if r.Status != status || len(r.Attempts) != tries {
			t.Errorf("%s: %s after %d attempts, want %s after %d", id, r.Status, len(r.Attempts), status, tries)
		}
	}
}

// number returns the number in the id of a job.
func number(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "job-"))
	return n
}

// reached reports whether, when some request came, that much was under way.
func (s *service) reached(full map[string]int) bool {
	for _, v := range s.visits {
		all := true
		for name, n := range full {
			all = all && v.underWay[name] == n
		}
		if all {
			return true
		}
	}
	return false
}

// TestCutShortCallsAreStillCounted ends calls early, at a server that goes on
// with them for a while. What it counts may then be above the caps, but only by
// calls whose connection we had closed before.
func TestCutShortCallsAreStillCounted(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(w *world, stop func(), js []*jobspec.Job)
		cut    results.Status
		excess bool // other calls start while the server goes on with those
	}{
		{"calls longer than their timeout", func(_ *world, _ func(), js []*jobspec.Job) {
			for _, j := range js {
				j.Timeout, j.Retry.Attempts = 100*time.Millisecond, 1
			}
		}, results.Failed, true},
		{"a run that is stopped and has no grace", func(w *world, stop func(), _ []*jobspec.Job) {
			w.Grace = 0
			time.AfterFunc(300*time.Millisecond, stop)
		}, results.Interrupted, false},
		{"a run that is killed within its grace", func(w *world, stop func(), _ []*jobspec.Job) {
			var kill context.CancelFunc
			w.Kill, kill = context.WithCancel(context.Background())
			time.AfterFunc(200*time.Millisecond, stop)
			time.AfterFunc(300*time.Millisecond, kill)
		}, results.Interrupted, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(_ http.ResponseWriter, r *http.Request, v *visit) {
				if busy(20 * time.Millisecond); number(v.job)%2 == 1 {
					v.awaitHangUp(r)
					busy(150 * time.Millisecond)
				}
			})
			var js []*jobspec.Job
			for i := range 40 {
				js = append(js, s.job(i, "x", []string{"a", "b"}[i/2%2]))
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w := s.run(t, ctx, limitsOf(t, "{hosts: {x: {concurrency: 4}}, accounts: {a: {concurrency: 2}, b: {concurrency: 2}}}"),
				func(w *world) { row.change(w, stop, js) }, js...)

			s.checkExcess(t, w.sink.byID(t), map[string]int{"x": 4, "a": 2, "b": 2})
			if got := s.peak("x"); row.excess != (got > 4) {
				t.Errorf("the server had up to %d under way, want more than 4: %v", got, row.excess)
			}
			cut := 0
			for _, r := range w.sink.records {
				if r.Status == row.cut {
					cut++
				}
			}
			if cut < 2 {
				t.Errorf("%d jobs ended as %s, want some that were cut short", cut, row.cut)
			}
		})
	}
}

// checkExcess wants that whenever a request came, no more than the caps were
// under way of which we had not closed the connection, and that the server saw
// all of those closed.
func (s *service) checkExcess(t *testing.T, records map[string]results.Record, most map[string]int) {
	t.Helper()
	ended := make(map[*visit]limits.Time)
	for _, v := range s.visits {
		a := attemptOf(t, records, v)
		ended[v] = a.EndedAt.Limits()
		if cut := a.Outcome != string(call.OK); cut != (v.hungUp > 0) || v.hungUp > ended[v].Add(time.Second) {
			t.Errorf("%s ended as %q at %v, the server saw the connection closed at %v", v.job, a.Outcome, ended[v].Wall(), v.hungUp.Wall())
		}
	}
	for i, v := range s.visits {
		open := map[string]int{v.host: 1, v.account: 1}
		for _, other := range s.visits[:i] {
			if other.left > v.came && ended[other] > v.came {
				open[other.host]++
				open[other.account]++
			}
		}
		for name, n := range open {
			if n > most[name] {
				t.Errorf("when %s came, the server had %d calls under way for %s that we had not given up, want at most %d", v.job, n, name, most[name])
			}
		}
	}
}

// TestSmallAccountStartsAtOnce puts an account with 50 jobs in front of one with
// 2, on the same host.
func TestSmallAccountStartsAtOnce(t *testing.T) {
	for _, row := range []struct {
		name   string
		limits string
		takes  time.Duration
		status int // of the first answer to a job of the big account
	}{
		{"its calls are slow", "{hosts: {x: {concurrency: 4}}, accounts: {'*': {concurrency: 2}}}", 40 * time.Millisecond, 200},
		{"its calls wait for tokens", "{hosts: {x: {concurrency: 1}}, accounts: {big: {concurrency: 2, rate: 50/s}}}", time.Millisecond, 200},
		{"its calls wait in backoff", "{hosts: {x: {concurrency: 1}}, accounts: {'*': {concurrency: 2}}}", time.Millisecond, 503},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, v *visit) {
				if busy(row.takes); v.account == "big" && v.nth == 1 {
					w.WriteHeader(row.status)
				}
			})
			var js []*jobspec.Job
			for i := range 52 {
				js = append(js, s.job(i, "x", "big"))
				js[i].Retry.Initial = 2 * time.Second
			}
			js[50].Account, js[51].Account = "small", "small"
			began := s.local.Now()
			w := s.run(t, t.Context(), limitsOf(t, row.limits), nil, js...)

			records, last := w.sink.byID(t), limits.Time(0)
			for _, r := range records {
				last = max(last, r.EndedAt.Limits())
			}
			for _, id := range []string{"job-50", "job-51"} {
				r := records[id]
				if waited := r.Attempts[0].StartedAt.Limits().Sub(began); r.Status != results.Succeeded || waited > 500*time.Millisecond {
					t.Errorf("%s of the small account: %s, started after %v of the run's %v, want at once", id, r.Status, waited, last.Sub(began))
				}
			}
			if last.Sub(began) < 900*time.Millisecond {
				t.Errorf("the run took %v: too short to show anything", last.Sub(began))
			}
		})
	}
}

// TestTwoLimitsAtOnce has room for 40 calls, but tokens for 8 a second.
func TestTwoLimitsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request, *visit) { busy(10 * time.Millisecond) })
	var js []*jobspec.Job
	for i := range 25 {
		js = append(js, s.job(i, "x", "a"))
	}
	s.run(t, t.Context(), limitsOf(t, "{hosts: {x: {concurrency: 40, rate: 8/s}}}"), nil, js...)

	// Records are judged to the microsecond. A request may take a while to come:
	// as much as that, a window is shorter here.
	const lag = 200 * time.Millisecond
	for i, first := range s.visits {
		for n, last := range s.visits[i:] {
			window := last.came.Sub(first.came) + lag
			if spent := float64(n + 1); spent > 1+8*window.Seconds() {
				t.Fatalf("%v starts within %v, want at most 1 + 8 a second", spent, window)
			}
		}
	}
	if took := s.visits[24].came.Sub(s.visits[0].came); took < 3*time.Second-lag || took > 4*time.Second {
		t.Errorf("24 starts took %v, want 3 s: 8 a second", took)
	}
}
