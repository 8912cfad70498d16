package cmd_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentlimit/cmd"
	"agentlimit/jobspec"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

// late is how late something may be on a busy machine. Nothing may be early.
const late = 700 * time.Millisecond

// performed is a run of a job file by the command line, up to its results file.
type performed struct {
	code    int
	records map[string]results.Record // by job
	inOrder []results.Record
}

// perform runs a job file, in which ${var:base} is the server if there is one, and
// has the records held against it: no limit broken, no job lost or doubled.
func perform(t *testing.T, server, jobs string) *performed {
	t.Helper()
	return performUntil(t, t.Context(), server, jobs)
}

// performUntil is perform for a run that is stopped when ctx is done: jobs may
// then have no record.
func performUntil(t *testing.T, ctx context.Context, server, jobs string, flags ...string) *performed {
	t.Helper()
	dir, vars := t.TempDir(), map[string]string{"base": cmp.Or(server, "no server")}
	file, out := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "results.jsonl")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	p := &performed{records: make(map[string]results.Record)}
	args := append([]string{"run", file, "-o", out, "--var", "base=" + vars["base"]}, flags...)
	p.code = cmd.Run(ctx, args, nil, &stdout, &stderr)
	data, err := os.ReadFile(out)
	if err != nil || stdout.Len() > 0 {
		t.Fatalf("exit code %d, read results: %v; stdout\n%s\nstderr\n%s", p.code, err, &stdout, &stderr)
	}
	spec, err := jobspec.Load(jobspec.Options{Files: []string{file}, Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Spec{Limits: limitsOf(spec)}
	if ctx.Err() == nil {
		want.Jobs = slices.Values(idsOf(t, spec.Source))
	}
	report := audit.Check(results.Read(bytes.NewReader(data)), want)
	for _, v := range report.Violations {
		t.Errorf("audit: %s: %s", v.Kind, v.Message)
	}
	for r := range results.Read(bytes.NewReader(data)) {
		p.records[r.ID] = r
		p.inOrder = append(p.inOrder, r)
	}
	return p
}

func idsOf(t *testing.T, source jobspec.Source) (all []string) {
	t.Helper()
	for {
		job, err := source.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, job.ID)
	}
}

// exits wants an exit code.
func (p *performed) exits(t *testing.T, code int) {
	t.Helper()
	if p.code != code {
		t.Errorf("exit code %d, want %d", p.code, code)
	}
}

// admissions returns when attempts were admitted, in order.
func (p *performed) admissions() (all []time.Time) {
	for _, r := range p.inOrder {
		for _, a := range r.Attempts {
			all = append(all, a.AdmittedAt.Time)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// end is what most tests want to know of a record.
type end struct {
	Status results.Status
	Tries  int
	Code   int    // the answer's status, or the exit code
	Body   string // or standard output
	Error  string // its kind
}

// ends returns how the jobs ended.
func (p *performed) ends() map[string]end {
	all := make(map[string]end)
	for id, r := range p.records {
		e := end{Status: r.Status, Tries: len(r.Attempts)}
		if r.HTTP != nil {
			e.Code, e.Body = r.HTTP.Status, r.HTTP.Body
		}
		if r.Exec != nil {
			e.Code, e.Body = r.Exec.ExitCode, r.Exec.Stdout
		}
		if r.Error != nil {
			e.Error = r.Error.Kind
		}
		all[id] = e
	}
	return all
}

// visitors is a server that keeps what it was sent, by path.
type visitors struct {
	*httptest.Server

	mu    sync.Mutex // guards what follows
	seen  map[string][]visit
	conns int
}

// visit is one request as it came.
type visit struct {
	header http.Header
	body   string
}

// receive starts a server that answers as a test says; nth counts the requests
// of a path from 1.
func receive(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, nth int)) *visitors {
	t.Helper()
	s := &visitors{seen: make(map[string][]visit)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen[r.URL.Path] = append(s.seen[r.URL.Path], visit{r.Header, string(body)})
		nth := len(s.seen[r.URL.Path])
		s.mu.Unlock()
		answer(w, r, nth)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// visits returns the requests that a path had, in order.
func (s *visitors) visits(path string) []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[path]
}

// hangUp is the answer of a server that closes the connection instead.
func hangUp() { panic(http.ErrAbortHandler) }

// nobody returns the address of a port on which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fill puts lines of a job into a job file, each made from its number.
func fill(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}
