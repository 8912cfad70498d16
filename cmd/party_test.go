//go:build linux

package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

// party is a folder in which processes run that share a coordinator, and the service
// that they call.
type party struct {
	t           *testing.T
	dir         string
	coordinator string
	redis       *redisServer // nil: they meet in a folder
	service     *service
}

// long reports whether tests may take their time.
func long() bool { return os.Getenv("AGENTLIMIT_LONG") != "" }

// sideBySide runs tests at once: they wait most of the time.
func sideBySide(t *testing.T, tests map[string]func(*testing.T)) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
}

// atEach runs tests at each kind of coordinator.
func atEach(t *testing.T, tests map[string]func(*testing.T, *party)) {
	all := make(map[string]func(*testing.T))
	for name, test := range tests {
		all["folder/"+name] = func(t *testing.T) { test(t, atFolder(t)) }
		all["redis/"+name] = func(t *testing.T) { test(t, atRedis(t, newRedis(t))) }
	}
	sideBySide(t, all)
}

func atFolder(t *testing.T) *party {
	t.Helper()
	dir := t.TempDir()
	return &party{t: t, dir: dir, coordinator: "folder:" + filepath.Join(dir, "meet"), service: newCounting(t)}
}

func atRedis(t *testing.T, s *redisServer) *party {
	t.Helper()
	return &party{t: t, dir: t.TempDir(), coordinator: "redis://" + s.addr, redis: s, service: newCounting(t)}
}

// member is one process of a party.
type member struct {
	*exec.Cmd
	t         *testing.T
	by        string // what its calls say whose they are
	out, said bytes.Buffer
}

// start starts agentlimit.
func (p *party) start(by string, args ...string) *member {
	p.t.Helper()
	m := &member{Cmd: exec.Command("agentlimit", args...), t: p.t, by: by}
	m.Dir, m.Stdout, m.Stderr = p.dir, &m.out, &m.said
	m.Env = append(os.Environ(), "BY="+by, "AGENTLIMIT_COORDINATOR="+p.coordinator)
	m.WaitDelay = time.Second // what a killed one leaves behind may have its output
	if err := m.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { m.Process.Kill(); m.Wait() })
	return m
}

// write writes the job file NAME.yaml.
func (p *party) write(name, limits string, jobs []string) {
	p.t.Helper()
	text := "public_env: [BY]\nlimits: " + limits + "\ndefaults: {http: {headers: {X-By: \"${env:BY}\"}}}\njobs:\n- " + strings.Join(jobs, "\n- ") + "\n"
	if err := os.WriteFile(filepath.Join(p.dir, name+".yaml"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// run starts a run of jobs of its own.
func (p *party) run(name, limits string, jobs []string, flags ...string) *member {
	p.t.Helper()
	p.write(name, limits, jobs)
	return p.start(name, append([]string{"run", name + ".yaml"}, flags...)...)
}

// exits waits for the process to end, and wants one of some exit codes.
func (m *member) exits(codes ...int) {
	m.t.Helper()
	over := time.AfterFunc(5*time.Minute, func() { m.Process.Kill() })
	defer over.Stop()
	if got := exitCodeOf(m.t, m.Cmd); !slices.Contains(codes, got) {
		m.t.Errorf("%s ended with %d, want %d; it said\n%s", m.by, got, codes, &m.said)
	}
}

// exitsSaying also wants something on standard error.
func (m *member) exitsSaying(code int, says string) {
	m.t.Helper()
	m.exits(code)
	if said := m.said.String(); !strings.Contains(said, says) {
		m.t.Errorf("%s did not say %q, but\n%s", m.by, says, said)
	} else if testing.Verbose() {
		m.t.Logf("%s said\n%s", m.by, said)
	}
}

// status is what the status command says of a key.
type status struct {
	Key     string
	InUse   int64 `json:"in_use"`
	Waiting int64
	Members []struct {
		Member string
		InUse  int64 `json:"in_use"`
	}
}

// status asks what processes hold and wait for.
func (p *party) status() []status {
	p.t.Helper()
	var doc struct{ Keys []status }
	m := p.start("status", "status", "--coordinator", p.coordinator, "--format", "json")
	m.exits(0)
	if err := json.Unmarshal(m.out.Bytes(), &doc); err != nil {
		p.t.Fatalf("status said %q, %q: %v", &m.out, &m.said, err)
	}
	return doc.Keys
}

// stored returns how much is stored at the coordinator: files and their bytes, or keys.
func (p *party) stored() (entries int, size int64) {
	p.t.Helper()
	if p.redis != nil {
		entries, _ = strconv.Atoi(strings.TrimPrefix(p.redis.does("DBSIZE"), ":"))
		return entries, 0
	}
	err := filepath.Walk(strings.TrimPrefix(p.coordinator, "folder:"), func(_ string, file os.FileInfo, err error) error {
		if err == nil {
			entries++
			size += file.Size()
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return entries, size
}

// awaitWaiting waits until somebody waits for a permit.
func (p *party) awaitWaiting() {
	p.t.Helper()
	for start := time.Now(); ; {
		for _, key := range p.status() {
			if key.Waiting > 0 {
				return
			}
		}
		if time.Since(start) > testTimeout {
			p.t.Fatal("nobody waits")
		}
	}
}

// kill kills the process. From now on its calls do not count: their connections are
// about to be gone.
func (p *party) kill(m *member) {
	p.service.forget(m.by)
	m.Process.Kill()
	m.Wait()
}

// records returns all records of all runs; the last line of a killed one may be cut.
func (p *party) records() iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		names, _ := filepath.Glob(filepath.Join(p.dir, "*.results.jsonl"))
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				p.t.Fatal(err)
			}
			for r, err := range results.Read(bytes.NewReader(data)) {
				if !errors.Is(err, results.ErrTorn) && !yield(r, err) {
					return
				}
			}
		}
	}
}

// audit has the records of all runs judged together: no limit broken, no job lost.
func (p *party) audit() {
	p.t.Helper()
	names, _ := filepath.Glob(filepath.Join(p.dir, "*.yaml"))
	want := audit.Spec{PauseLag: 100 * time.Millisecond}
	var ids []string
	for _, name := range names {
		spec, err := jobspec.Load(jobspec.Options{Files: []string{name}, Env: func(string) (string, bool) { return "somebody", true }})
		if err != nil {
			p.t.Fatal(err)
		}
		want.Limits = limitsOf(spec) // the same in all
		ids = append(ids, idsOf(p.t, spec.Source)...)
	}
	want.Jobs = slices.Values(ids)
	for _, v := range audit.Check(p.records(), want).Violations {
		p.t.Errorf("audit: %s: %s", v.Kind, v.Message)
	}
}

// calls makes n jobs of a process, each a call that takes so long.
func (p *party) calls(name string, n int, path string, takes time.Duration, more string) (jobs []string) {
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		jobs = append(jobs, fmt.Sprintf("{id: %s, http: {url: %q}%s}", id, p.service.url(path, takes, id), more))
	}
	return jobs
}
