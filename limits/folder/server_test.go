//go:build linux || darwin

package folder

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"agentlimit/limits"
)

// server counts calls, outside of the product.
type server struct {
	t *testing.T
	net.Listener

	mu       sync.Mutex
	underWay map[string]map[int]int // by key and process
	spent    []limits.Time          // when tokens of the pool were paid
	calls    int
	dying    map[int]bool
}

func newServer(t *testing.T) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, Listener: l, underWay: make(map[string]map[int]int), dying: make(map[int]bool)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *server) serve(conn net.Conn) {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		s.heard(strings.Fields(lines.Text()))
		_, _ = fmt.Fprintln(conn, "ok") // a process may have been killed
	}
	_ = conn.Close()
}

// heard counts one beginning or end of a call of a process that is not being killed.
func (s *server) heard(line []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, _ := strconv.Atoi(line[1])
	at, _ := strconv.ParseInt(line[2], 10, 64)
	for _, name := range line[3:] {
		key, err := limits.ParseKey(name)
		if err != nil {
			s.t.Error(err)
		}
		if s.underWay[name] == nil {
			s.underWay[name] = make(map[int]int)
		}
		if line[0] == "end" {
			s.underWay[name][pid]--
			continue
		}
		if key.Kind == limits.Pool {
			s.spent = append(s.spent, limits.Time(at))
		}
		if s.dying[pid] {
			continue
		}
		s.calls++
		s.underWay[name][pid]++
		total := 0
		for pid, n := range s.underWay[name] {
			if !s.dying[pid] {
				total += n
			}
		}
		if most := crowdLimits[key].Concurrency; most > 0 && total > int(most) {
			s.t.Errorf("%s: %d calls under way, want at most %d", name, total, most)
		}
	}
}

// killed says that a process's calls count no longer, from before it is killed.
func (s *server) killed(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dying[pid] = true
}

// checkRate compares every window with what the pool's bucket allows.
func (s *server) checkRate(t *testing.T) {
	l := crowdLimits[limits.Key{Kind: limits.Pool, Name: "p"}]
	slices.Sort(s.spent)
	for i := range s.spent {
		for j := i; j < len(s.spent); j++ {
			if spent, allowed := int64(j-i+1)*l.Rate.Per, l.Burst*l.Rate.Per+int64(s.spent[j]-s.spent[i])*l.Rate.Tokens; spent > allowed {
				t.Fatalf("%d tokens within %d µs", j-i+1, s.spent[j]-s.spent[i])
			}
		}
	}
}
