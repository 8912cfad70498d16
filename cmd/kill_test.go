//go:build unix

package cmd_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

const (
	kills        = 20                     // of one run
	killedWithin = 120 * time.Millisecond // of its start
	callWithin   = 120 * time.Millisecond // a call ends
	killedJobs   = 200
	underWay     = 8 // of its calls, at most
)

// killed is a run that is killed again and again. Every call says which start of
// the run it is of, so that all can be accounted for.
type killed struct {
	t    *testing.T
	dir  string
	at   string // the coordinator
	rnd  *rand.Rand
	hit  []bool         // by start: whether it was killed; from 1
	done map[string]int // by job: after which start its last record was there
	last map[string]results.Record

	mu    sync.Mutex       // guards what follows
	calls map[string][]int // by job: the starts that made them
}

// TestKilledRunLosesNothing kills a run at random moments and goes on with it, until
// all is done: what has its record is left alone, what must not be sent twice is
// not, and what was repeated had been under way at a kill.
// Under a coordinator that outlives it, commands that go on count meanwhile.
func TestKilledRunLosesNothing(t *testing.T) {
	t.Parallel()
	coordinators := []string{"local"}
	if runtime.GOOS == "linux" {
		coordinators = append(coordinators, "folder:meet")
	}
	rounds := 1
	if os.Getenv("AGENTLIMIT_LONG") != "" {
		rounds = 5
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("AGENTLIMIT_SEED"), fmt.Sprint(time.Now().UnixNano())), 10, 64)
	if err != nil {
		t.Fatalf("AGENTLIMIT_SEED: %v", err)
	}
	for round := range uint64(rounds) {
		for _, at := range coordinators {
			t.Run(fmt.Sprintf("%s/AGENTLIMIT_SEED=%d", at, seed+round), func(t *testing.T) {
				t.Parallel()
				k := &killed{
					t: t, dir: t.TempDir(), at: at, rnd: rand.New(rand.NewPCG(seed+round, 0)),
					hit: make([]bool, 1), done: make(map[string]int), calls: make(map[string][]int),
				}
				server := httptest.NewServer(k)
				t.Cleanup(server.Close)
				k.writeJobs(server.URL)
				for range kills {
					k.start(k.random(killedWithin))
				}
				k.start(testTimeout)
				k.accountFor()
				k.audit()
			})
		}
	}
}

// random returns a random time below d.
func (k *killed) random(d time.Duration) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(k.rnd.Int64N(int64(d)))
}

// ServeHTTP notes a call, and takes a while to answer.
func (k *killed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	k.called(strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("X-Start"))
	select {
	case <-time.After(k.random(callWithin)):
	case <-r.Context().Done():
	}
}

func (k *killed) called(id, start string) {
	n, _ := strconv.Atoi(start)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[id] = append(k.calls[id], n)
}

// writeJobs writes the job file: commands, requests that may be repeated, and
// requests that must not.
func (k *killed) writeJobs(url string) {
	var b strings.Builder
	fmt.Fprintf(&b, "limits: {global: {concurrency: %d}, hosts: {\"*\": {concurrency: 4}}}\njobs:\n", underWay)
	for i := range killedJobs {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, `- {id: exec-%d, host: h, exec: {shell: "echo exec-%[1]d $START >>calls; sleep %.3f"}}`, i, k.random(callWithin).Seconds())
		case 1:
			fmt.Fprintf(&b, `- {id: get-%d, http: {url: "%s/get-%[1]d", headers: {X-Start: "${env:START}"}}}`, i, url)
		case 2:
			fmt.Fprintf(&b, `- {id: post-%d, http: {method: POST, url: "%s/post-%[1]d", headers: {X-Start: "${env:START}"}}}`, i, url)
		}
		b.WriteByte('\n')
	}
	if err := os.WriteFile(filepath.Join(k.dir, "jobs.yaml"), []byte(b.String()), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// start starts the run, or goes on with it, kills it if it takes longer than
// within, and notes which jobs are done.
func (k *killed) start(within time.Duration) {
	var said bytes.Buffer
	c := exec.Command("agentlimit", "run", "--resume", "--coordinator", k.at, "jobs.yaml")
	c.Dir, c.Stderr = k.dir, &said
	c.Env = append(os.Environ(), "TMPDIR="+k.dir, fmt.Sprintf("START=%d", len(k.hit)))
	if err := c.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(within, func() { c.Process.Kill() })
	c.Wait() // its error is looked at below
	timer.Stop()
	state := c.ProcessState.Sys().(syscall.WaitStatus)
	if !state.Signaled() && state.ExitStatus() > 1 {
		k.t.Errorf("start %d: exit code %d, want 0 or 1; it said\n%s", len(k.hit), state.ExitStatus(), &said)
	}
	k.last = make(map[string]results.Record)
	for _, r := range k.records() {
		k.last[r.ID] = r
		if _, known := k.done[r.ID]; !known {
			k.done[r.ID] = len(k.hit)
		}
	}
	k.hit = append(k.hit, state.Signaled())
}

// records reads the results file, whose last line may be cut off.
func (k *killed) records() (all []results.Record) {
	data, err := os.ReadFile(filepath.Join(k.dir, "jobs.results.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	for r, err := range results.Read(bytes.NewReader(data)) {
		switch {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, results.ErrTorn):
			k.t.Errorf("after start %d: %v", len(k.hit), err)
		}
	}
	return all
}

// accountFor holds all calls against the records.
func (k *killed) accountFor() {
	data, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil {
		k.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		id, start, _ := strings.Cut(strings.TrimSpace(line), " ")
		k.called(id, start)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	repeated, unknown := 0, 0
	open := make([]int, len(k.hit)) // by start: calls that it left without a record
	for id, r := range k.last {
		calls := slices.Sorted(slices.Values(k.calls[id]))
		repeated += max(0, len(calls)-1)
		post := strings.HasPrefix(id, "post-")
		switch {
		case r.Status == results.Unknown:
			unknown++
			if !post || r.Error.Kind != "killed" {
				k.t.Errorf("%s is of unknown fate: %+v", id, r.Error)
			}
		case r.Status != results.Succeeded:
			k.t.Errorf("%s: %s, want it succeeded: %+v", id, r.Status, r.Error)
		case len(calls) == 0 || calls[len(calls)-1] != k.done[id]:
			k.t.Errorf("%s succeeded in start %d, and was called in %v", id, k.done[id], calls)
		}
		if post && len(calls) > 1 {
			k.t.Errorf("%s was sent in starts %v, want once", id, calls)
		}
		if distinct := slices.Compact(slices.Clone(calls)); len(distinct) != len(calls) {
			k.t.Errorf("%s was called in starts %v, want once in each", id, calls)
		}
		for _, start := range calls {
			switch {
			case start > k.done[id]:
				k.t.Errorf("%s was called in start %d, after its record was there in %d", id, start, k.done[id])
			case start < k.done[id] && !k.hit[start]:
				k.t.Errorf("%s was called in start %d, which was not killed, and has its record from %d", id, start, k.done[id])
			case start < k.done[id]:
				open[start]++
			}
		}
	}
	for start, n := range open {
		if n > 2*underWay { // some may have just ended
			k.t.Errorf("start %d left %d calls without a record, want those under way, at most %d", start, n, underWay)
		}
	}
	hit := len(slices.DeleteFunc(slices.Clone(k.hit), func(hit bool) bool { return !hit }))
	k.t.Logf("killed %d times; of %d jobs %d were called again and %d are of unknown fate", hit, len(k.last), repeated, unknown)
	if len(k.last) != killedJobs {
		k.t.Errorf("%d jobs have a record, want %d", len(k.last), killedJobs)
	}
}

// audit has the records judged: no job lost or doubled, no limit broken.
func (k *killed) audit() {
	spec, err := jobspec.Load(jobspec.Options{
		Files: []string{filepath.Join(k.dir, "jobs.yaml")},
		Env:   func(string) (string, bool) { return "0", true }, // of START
	})
	if err != nil {
		k.t.Fatal(err)
	}
	var ids []string
	for {
		j, err := spec.Source.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			k.t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	all := func(yield func(results.Record, error) bool) {
		for _, r := range k.records() {
			if !yield(r, nil) {
				return
			}
		}
	}
	for _, v := range audit.Check(all, audit.Spec{Limits: limitsOf(spec), Jobs: slices.Values(ids)}).Violations {
		k.t.Errorf("audit: %s: %s", v.Kind, v.Message)
	}
}
