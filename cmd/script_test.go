package cmd_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentlimit/cmd"
	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

// quickRaces keeps programs built with -race from waiting a second at their end.
const quickRaces = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", quickRaces)
	testscript.Main(m, map[string]func(){
		"agentlimit": func() { os.Exit(cmd.Main()) },
	})
}

// TestScripts runs the command line as its users see it. Besides the commands of
// testscript there are
//
//	exits CODE agentlimit ARGS...          wants this very exit code
//	audit [-partial] [NAME=VALUE...] RESULTS FILE...
//	                                       wants the records to keep the files' limits
//	requests N PATH                        wants the server to have had N requests
//
// the condition [unshare], that a user may have a file system of its own, and
// $SERVER, a server that counts. It answers
//
//	/status/N    with N
//	/later/N/…   once with 429 and Retry-After: N, then with 200
//	/quota/…     with 429 and a reason in JSON
//	/hang/…      never
//
// and anything else with 200.
func TestScripts(t *testing.T) {
	examples, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "../testscripts",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			s := newServer()
			env.Defer(s.Close)
			env.Values[serverKey{}] = s
			env.Setenv("GORACE", quickRaces)
			env.Setenv("SERVER", s.URL)
			env.Setenv("EXAMPLES", examples+"/../examples")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "unshare" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return exec.Command("unshare", "-rm", "true").Run() == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"audit":    auditRecords,
			"requests": requests,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, found := errors.AsType[*exec.ExitError](err)
		if !found {
			ts.Fatalf("%q: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("%q: exit code %s, want %s", args[1:], got, args[0])
	}
}

// auditRecords proves from the records of a run that it kept the limits of its
// job files, and with them that every job has a record.
func auditRecords(ts *testscript.TestScript, neg bool, args []string) {
	partial := len(args) > 0 && args[0] == "-partial"
	if partial {
		args = args[1:]
	}
	vars := make(map[string]string)
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, value, _ := strings.Cut(args[0], "=")
		vars[name], args = value, args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: audit [-partial] [NAME=VALUE...] RESULTS FILE...")
	}
	o := jobspec.Options{Vars: vars, Env: func(name string) (string, bool) {
		value := ts.Getenv(name)
		return value, value != ""
	}}
	for _, name := range args[1:] {
		o.Files = append(o.Files, ts.MkAbs(name))
	}
	spec, err := jobspec.Load(o)
	ts.Check(err)
	want := audit.Spec{Limits: limitsOf(spec)}
	if !partial {
		want.Jobs = ids(ts, spec.Source)
	}
	report := audit.Check(results.Read(strings.NewReader(ts.ReadFile(args[0]))), want)
	for _, v := range report.Violations {
		ts.Logf("audit %s: %s: %s", args[0], v.Kind, v.Message)
	}
	if len(report.Violations) > 0 {
		ts.Fatalf("audit %s: %d violations", args[0], len(report.Violations))
	}
}

func limitsOf(spec *jobspec.Spec) func(limits.Key) limits.Limit {
	return func(key limits.Key) limits.Limit {
		if key == (limits.Key{}) {
			return limits.Limit{Concurrency: int64(max(spec.Global, 16))}
		}
		return spec.Limits.For(key)
	}
}

func ids(ts *testscript.TestScript, source jobspec.Source) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			job, err := source.Next()
			if err == io.EOF {
				return
			}
			ts.Check(err)
			if !yield(job.ID) {
				return
			}
		}
	}
}

type serverKey struct{}

// server counts the requests it gets.
type server struct {
	*httptest.Server

	mu    sync.Mutex // guards what follows
	count map[string]int
}

func newServer() *server {
	s := &server{count: make(map[string]int)}
	s.Server = httptest.NewServer(s)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.count[r.URL.Path]++
	nth := s.count[r.URL.Path]
	s.mu.Unlock()
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch what {
	case "status":
		n, _ := strconv.Atoi(rest)
		w.WriteHeader(n)
	case "later":
		if wait, _, _ := strings.Cut(rest, "/"); nth == 1 {
			w.Header().Set("Retry-After", wait)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	case "quota":
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":{"code":"plan_used_up","message":"no units left until the 1st\nask sales"}}`)
		return
	case "hang":
		io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		<-r.Context().Done()
		return
	}
	io.WriteString(w, "hello from "+r.URL.Path)
}

func requests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: requests N PATH")
	}
	s := ts.Value(serverKey{}).(*server)
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strconv.Itoa(s.count[args[1]]); got != args[0] {
		ts.Fatalf("the server had %s requests for %s, want %s", got, args[1], args[0])
	}
}

// testTimeout bounds how long a test waits for something of the product.
const testTimeout = 20 * time.Second
