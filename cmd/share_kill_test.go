//go:build linux

package cmd_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/runner/results"
)

const (
	oneCall = `{hosts: {"*": {concurrency: 1}}}`
	noEnd   = 10 * time.Minute // a call that does not end by itself
	lease   = 12500 * time.Millisecond
)

// TestHolders is about processes that hold permits and do not go on.
func TestHolders(t *testing.T) {
	tests := map[string]func(*testing.T){
		"killed, in a folder":  func(t *testing.T) { killedHolder(t, atFolder(t), time.Second) },
		"killed, at Redis":     func(t *testing.T) { killedHolder(t, atRedis(t, newRedis(t)), lease+time.Second) },
		"stopped, in a folder": func(t *testing.T) { stoppedInFolder(t, atFolder(t)) },
		"an exec's command outlives it": func(t *testing.T) {
			orphan(t, atFolder(t), "exec", "--host", "box", "--limit", "host/box=1", "--", "sh", "command")
		},
		"a run's command outlives the run": func(t *testing.T) { orphan(t, atFolder(t), "run", "orphan.yaml") },
	}
	if long() {
		tests["stopped, at Redis"] = func(t *testing.T) { stoppedAtRedis(t, atRedis(t, newRedis(t))) }
		tests["honest, at Redis"] = func(t *testing.T) { honestAtRedis(t, atRedis(t, newRedis(t))) }
	}
	sideBySide(t, tests)
}

// killedHolder kills a run that has all permits, for which another one waits.
func killedHolder(t *testing.T, p *party, within time.Duration) {
	dead := p.run("dead", oneCall, p.calls("dead", 1, "h", noEnd, ""))
	p.service.await(t, "dead", 1)
	next := p.run("next", oneCall, p.calls("next", 1, "h", 0, ""))
	p.awaitWaiting()
	killed := time.Now()
	p.kill(dead)
	next.exits(0)
	took := p.service.arrivals("next")[0].at.Sub(killed)
	t.Logf("the permit of a killed run came after %v", took)
	if took < 0 || took > within {
		t.Errorf("the permit of a killed run came after %v, want at most %v", took, within)
	}
	p.service.wantKept(t, "h", 1, 0)
}

// stoppedInFolder stops a run past the end of its call, whose permit it keeps.
func stoppedInFolder(t *testing.T, p *party) {
	stopped := p.run("stopped", oneCall, p.calls("stopped", 1, "h", shortCall, ""))
	p.service.await(t, "stopped", 1)
	stopped.Process.Signal(syscall.SIGSTOP)
	p.run("late", oneCall, p.calls("late", 1, "h", 0, ""), "--deadline", "1s").exits(75)
	stopped.Process.Signal(syscall.SIGCONT)
	stopped.exits(0)
	p.run("next", oneCall, p.calls("next", 1, "h", 0, ""), "--deadline", "5s").exits(0)
	p.service.wantKept(t, "h", 1, 0)
}

// stoppedAtRedis stops a run for longer than its lease: others get its permit, and it
// says so when it goes on.
func stoppedAtRedis(t *testing.T, p *party) {
	stopped := p.run("stopped", oneCall, p.calls("stopped", 1, "h", lease+3*time.Second, ""))
	p.service.await(t, "stopped", 1)
	stopped.Process.Signal(syscall.SIGSTOP)
	began := time.Now()
	p.run("next", oneCall, p.calls("next", 1, "h", 0, "")).exits(0)
	if took := time.Since(began); took > lease+2*time.Second {
		t.Errorf("the permit of a stopped run came after %v", took)
	}
	stopped.Process.Signal(syscall.SIGCONT)
	stopped.exits(0)
	if said := stopped.said.String(); !strings.Contains(said, "others may have used what it holds") {
		t.Errorf("the stopped run said\n%s", said)
	}
}

// honestAtRedis has a call that takes as long as several leases keep its permit.
func honestAtRedis(t *testing.T, p *party) {
	honest := p.run("honest", oneCall, p.calls("honest", 1, "h", 3*lease, ""))
	p.service.await(t, "honest", 1)
	next := p.run("next", oneCall, p.calls("next", 1, "h", 0, ""))
	honest.exits(0)
	next.exits(0)
	p.service.wantKept(t, "h", 1, 0)
	p.audit()
}

// orphan kills what has started a command: the command counts until it ends.
func orphan(t *testing.T, p *party, start ...string) {
	command := filepath.Join(p.dir, "command")
	if err := os.WriteFile(command, []byte("echo $$ >pid.new; mv pid.new pid; exec sleep 600"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write("orphan", "{hosts: {box: {concurrency: 1}}}", []string{"{host: box, exec: {argv: [sh, command]}}"})
	parent := p.start("parent", start...)
	awaitFile(t, filepath.Join(p.dir, "pid"))
	text, err := os.ReadFile(filepath.Join(p.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	p.kill(parent)
	next := func(code int) {
		t.Helper()
		p.start("next", "exec", "--host", "box", "--limit", "host/box=1", "--deadline", "1s", "--", "true").exits(code)
	}
	next(75)
	if all := p.status(); len(all) != 1 || all[0].InUse != 1 {
		t.Errorf("while the command lives: %+v", all)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	next(0)
}

// TestComeAndGo is about processes that come and go.
func TestComeAndGo(t *testing.T) {
	atEach(t, map[string]func(*testing.T, *party){
		"hundreds of short ones":      storeDoesNotGrow,
		"some are killed, and resume": killAndResume,
	})
}

// storeDoesNotGrow has hundreds of short processes come one after the other, each with
// an account of its own.
func storeDoesNotGrow(t *testing.T, p *party) {
	most := 100
	if long() {
		most = 300
	}
	processes := func(from, to int) {
		c := exec.Command("sh", "-c", `i=$1; while [ $i -lt $2 ]; do
				agentlimit exec --host box --account run-$i --limit 'host/box=2,1000/s,burst=10' --limit 'account/*=1,1000/s' -- true || exit
				i=$((i+1)); done`, "sh", strconv.Itoa(from), strconv.Itoa(to))
		c.Env = append(os.Environ(), "AGENTLIMIT_COORDINATOR="+p.coordinator)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("exec: %v; it said\n%s", err, said)
		}
	}
	processes(0, 10)
	entries, bytes := p.stored()
	processes(10, most)
	more, larger := p.stored()
	t.Logf("%d entries of %d bytes, then %d of %d", entries, bytes, more, larger)
	if more > entries || larger > bytes+100 {
		t.Errorf("stored are %d entries of %d bytes after 10 processes, %d of %d after %d", entries, bytes, more, larger, most)
	}
}

// killAndResume kills one of eight runs again and again, which then goes on: the limit
// is kept, permits in use are those that somebody has, and at the end all is done and
// nothing is left at the coordinator.
func killAndResume(t *testing.T, p *party) {
	const limits = `{hosts: {"*": {concurrency: 4, rate: 50/s, burst: 1}}}`
	kills, within, jobs := 10, 300*time.Millisecond, 20
	if long() { // ten minutes
		kills, within, jobs = 100, 12*time.Second, 1500
	}
	all := make([]*member, 8)
	restart := func(i, start int) {
		all[i] = p.start(fmt.Sprintf("p%d.%d", i, start), "run", "--resume", fmt.Sprintf("p%d.yaml", i))
	}
	for i := range all {
		name := fmt.Sprint("p", i)
		gets := p.calls(name, jobs, "h", 100*time.Millisecond, "")
		for at := 0; at < len(gets); at += 3 { // must not be sent twice
			gets[at] = strings.Replace(gets[at], "{url", "{method: POST, url", 1)
		}
		p.write(name, limits, gets)
		restart(i, 0)
	}
	p.service.await(t, "", 1)
	for n := range kills {
		<-time.After(rand.N(within))
		i := rand.IntN(len(all))
		victim := all[i]
		p.kill(victim)
		p.wantBalance(victim)
		restart(i, n+1)
	}
	for _, m := range all {
		m.exits(0, 1) // some jobs are of unknown fate
	}
	p.service.wantKept(t, "h", 4, 50)
	p.audit()
	p.accountFor()
	if p.redis == nil || long() { // until leases have ended
		p.wantNothingLeft()
	}
}

// wantBalance wants the permits in use to be what processes hold; a killed one holds
// none, or at Redis until its lease has ended.
func (p *party) wantBalance(killed *member) {
	p.t.Helper()
	for _, key := range p.status() {
		sum := int64(0)
		for _, m := range key.Members {
			sum += m.InUse
			if p.redis == nil && strings.HasPrefix(m.Member, fmt.Sprintf("%d-", killed.Process.Pid)) {
				p.t.Errorf("%s: %+v was killed", key.Key, m)
			}
		}
		if sum != key.InUse || key.InUse > 4 {
			p.t.Errorf("%+v: want up to 4 in use, and %d, which processes hold", key, sum)
		}
	}
}

// accountFor holds the calls that came against the records: what has succeeded came,
// and what must not be sent twice came once at most.
func (p *party) accountFor() {
	p.t.Helper()
	came, posted := make(map[string]int), make(map[string]bool)
	for _, a := range p.service.arrivals("") {
		came[a.id]++
		if a.method == http.MethodPost {
			posted[a.id] = true
		}
	}
	last := make(map[string]results.Status)
	for r := range p.records() {
		last[r.ID] = r.Status
	}
	again, unknown := 0, 0
	for id, status := range last {
		switch {
		case posted[id] && came[id] > 1:
			p.t.Errorf("%s must not be sent twice, and came %d times", id, came[id])
		case posted[id] && status == results.Unknown:
			unknown++
		case status != results.Succeeded || came[id] == 0:
			p.t.Errorf("%s: %s, and came %d times", id, status, came[id])
		case came[id] > 1:
			again++
		}
	}
	p.t.Logf("of %d jobs %d were called again and %d are of unknown fate", len(last), again, unknown)
}

// wantNothingLeft wants nothing in use, nor stored of those that are gone, once another
// process has been there: at Redis for longer than a lease.
func (p *party) wantNothingLeft() {
	p.t.Helper()
	sweep := []string{"true"}
	if p.redis != nil {
		sweep = []string{"sleep", "13"}
	}
	p.start("sweep", append([]string{"exec", "--host", "sweep", "--limit", "host/sweep=1", "--"}, sweep...)...).exits(0)
	all := p.status()
	if entries, _ := p.stored(); len(all) > 0 || entries > 7 {
		p.t.Errorf("in use: %+v; %d files or keys", all, entries)
	}
}
