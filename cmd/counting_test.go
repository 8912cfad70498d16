//go:build linux

package cmd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// service counts what it is called for. A call of PATH/TAKES/ID takes so long.
type service struct {
	*httptest.Server

	mu     sync.Mutex // guards what follows
	came   []arrival
	open   map[int]arrival // those not yet answered, by their place in came
	peak   map[string]int  // most open at once, by path
	gone   map[string]bool // by whom calls do not count: their connections are broken
	refuse map[string]int  // by id: asked to come again in so many seconds, once
	hang   map[string]bool // by id: not answered, once
}

// arrival is one call as it came.
type arrival struct {
	at                   time.Time
	method, by, path, id string
}

func newCounting(t *testing.T) *service {
	s := &service{open: make(map[int]arrival), peak: make(map[string]int), gone: make(map[string]bool), refuse: make(map[string]int), hang: make(map[string]bool)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) url(path string, takes time.Duration, id string) string {
	return s.URL + "/" + path + "/" + takes.String() + "/" + id
}

// ServeHTTP answers when the call's time is over.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
	part := strings.Split(r.URL.Path, "/")
	takes, _ := time.ParseDuration(part[2])
	nth, later, hang := s.come(arrival{time.Now(), r.Method, r.Header.Get("X-By"), part[1], part[3]})
	defer s.end(nth)
	if hang {
		takes = noEnd
	}
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
	}
	if later > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(later))
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func (s *service) come(a arrival) (nth, later int, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nth = len(s.came)
	s.came = append(s.came, a)
	s.open[nth] = a
	now := 0
	for _, o := range s.open {
		if o.path == a.path && !s.gone[o.by] {
			now++
		}
	}
	s.peak[a.path] = max(s.peak[a.path], now)
	later, hang = s.refuse[a.id], s.hang[a.id]
	delete(s.refuse, a.id)
	delete(s.hang, a.id)
	return nth, later, hang
}

func (s *service) end(nth int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, nth)
}

func (s *service) forget(by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[by] = true
}

// arrivals returns the calls that have come, all or those of one process.
func (s *service) arrivals(by string) (all []arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.came {
		if by == "" || a.by == by {
			all = append(all, a)
		}
	}
	return all
}

// await waits until n calls have come, all or those of one process.
func (s *service) await(t *testing.T, by string, n int) {
	t.Helper()
	for start := time.Now(); len(s.arrivals(by)) < n; {
		if time.Since(start) > time.Minute {
			t.Fatalf("%d calls of %q have come, want %d", len(s.arrivals(by)), by, n)
		}
		<-time.After(2 * time.Millisecond) // they come from other processes
	}
}

// wantKept wants a path never to have had more than so many calls open, nor more
// starts in any window than a burst of one and so many a second allow. The way to the
// service makes starts come closer together than they were, by late at the most.
func (s *service) wantKept(t *testing.T, path string, most int, perSecond float64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peak[path] > most {
		t.Errorf("%s: %d calls were open at once, want at most %d", path, s.peak[path], most)
	}
	for i, from := range s.came {
		for n, to := range s.came[i:] {
			if w := to.at.Sub(from.at); perSecond > 0 && float64(n) > perSecond*(w+late).Seconds() {
				t.Errorf("%d calls came within %v, want at most 1 and %g/s", n+1, w, perSecond)
				return
			}
		}
	}
}
