package runner_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// service is a server that sees for itself what it is asked to do: what is under
// way, by host and by account, and when each request came and left. It does not
// trust what the client's records say.
type service struct {
	*httptest.Server
	local *limits.Local // whose clock it uses, so that its times compare with records

	mu     sync.Mutex // guards what follows
	visits []*visit   // in the order in which they came
}

// visit is one request of /HOST/ACCOUNT/JOB.
type visit struct {
	*service
	host, account, job string
	nth                int // of the job, from 1

	came, left limits.Time
	hungUp     limits.Time    // when the client was seen to have gone; 0: it waited
	underWay   map[string]int // by host and account, with this one, when it came
}

// serve starts a service that answers as a test says.
func serve(t *testing.T, answer func(http.ResponseWriter, *http.Request, *visit)) *service {
	t.Helper()
	s := &service{local: limits.NewLocal()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.arrive(strings.Split(r.URL.Path, "/"))
		defer s.leave(v) // before the last bytes of the answer leave
		answer(w, r, v)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) arrive(path []string) *visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &visit{service: s, host: path[1], account: path[2], job: path[3], nth: 1, came: s.local.Now(), underWay: make(map[string]int)}
	s.visits = append(s.visits, v)
	for _, other := range s.visits {
		if other.job == v.job && other != v {
			v.nth++
		}
		if other.left == 0 {
			v.underWay[other.host]++
			v.underWay[other.account]++
		}
	}
	return v
}

func (s *service) leave(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.left = s.local.Now()
}

// awaitHangUp waits until the client has gone.
func (v *visit) awaitHangUp(r *http.Request) {
	<-r.Context().Done()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hungUp = v.local.Now()
}

// peak returns the most that was under way at once for a host or an account.
func (s *service) peak(name string) int {
	most := 0
	for _, v := range s.visits {
		most = max(most, v.underWay[name])
	}
	return most
}

// job returns a request of the service that is repeated soon.
func (s *service) job(seq int, host, account string) *jobspec.Job {
	j := job(seq, host, account)
	j.HTTP.URL = fmt.Sprintf("%s/%s/%s/%s", s.URL, host, account, j.ID)
	j.Expect.Status = []jobspec.StatusRange{{Low: 200, High: 299}}
	j.Timeout = 10 * time.Second
	j.Retry.Attempts, j.Retry.Initial, j.Retry.OnStatus = 3, 20*time.Millisecond, []int{500, 503}
	return j
}

// run runs jobs through real connections under the limits, waits until the
// service has done with them, and has the records judged.
func (s *service) run(t *testing.T, ctx context.Context, table *limits.Table, change func(*world), js ...*jobspec.Job) *world {
	t.Helper()
	client := call.New(call.Config{Concurrency: 100})
	defer client.Close()
	w := newWorld(table, client, js...)
	w.Coordinator = s.local
	if change != nil {
		change(w)
	}
	w.run(t, ctx)
	s.Close()
	s.permitsAreBack(t, table, js)
	return w
}

// permitsAreBack takes every permit of every key that the jobs used.
func (s *service) permitsAreBack(t *testing.T, table *limits.Table, js []*jobspec.Job) {
	t.Helper()
	var batch limits.Batch
	seen := make(map[limits.Key]bool)
	for _, j := range js {
		for _, need := range j.Needs(nil, table) {
			for range need.Limit.Concurrency {
				if !seen[need.Key] {
					need.Cost = 0
					batch.Claims = append(batch.Claims, limits.Claim{ID: limits.ClaimID(1<<40 + len(batch.Claims)),
						Needs: []limits.Need{need}, Rank: limits.Rank{Deadline: limits.Never}})
				}
			}
			seen[need.Key] = true
		}
	}
	batch.Max = len(batch.Claims)
	var reply limits.Reply
	if err := s.local.Sync(t.Context(), &batch, &reply); err != nil {
		t.Fatal(err)
	}
	for i, v := range reply.Verdicts {
		if v.Cause != limits.Granted {
			t.Errorf("a permit of %v did not come back: %+v", batch.Claims[i].Needs[0].Key, v)
		}
	}
}

// attemptOf returns the attempt that a visit was: the last of its job that had
// started when it came.
func attemptOf(t *testing.T, records map[string]results.Record, v *visit) results.Attempt {
	t.Helper()
	attempts := records[v.job].Attempts
	for _, a := range slices.Backward(attempts) {
		if a.StartedAt.Limits() <= v.came {
			return a
		}
	}
	t.Fatalf("job %s came to the service at %v, but no attempt of it had started: %+v", v.job, v.came.Wall(), attempts)
	return results.Attempt{}
}

// limitsOf reads limits as a job file spells them.
func limitsOf(t testing.TB, text string) *limits.Table {
	t.Helper()
	spec, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: "yaml", Stdin: strings.NewReader("limits: " + text)})
	if err != nil {
		t.Fatal(err)
	}
	return &spec.Limits
}

// busy is the time that a service takes to answer.
func busy(d time.Duration) { <-time.After(d) }

// attempts counts the attempts in the records.
func attempts(records []results.Record) int {
	n := 0
	for _, r := range records {
		n += len(r.Attempts)
	}
	return n
}
