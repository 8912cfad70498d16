//go:build unix

package redis

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/limits"
)

// TestMain lets this program be one of several processes that share a namespace.
func TestMain(m *testing.M) {
	if url := os.Getenv("TEST_MEMBER"); url != "" {
		if err := beMember(url, os.Getenv("TEST_MEMBER_DOES")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beMember holds the permit of host/h, or makes short calls on host/h and account/x,
// until it is told to end.
func beMember(url, does string) error {
	timing := short
	if does == "hold as usual" {
		timing = usual
	}
	r, err := open(context.Background(), url, Options{Say: func(m string) { fmt.Println("said:", m) }}, timing)
	if err != nil {
		return err
	}
	end := make(chan struct{})
	go func() { _, _ = os.Stdin.Read(make([]byte, 1)); close(end) }()
	var reply limits.Reply
	sync := func(b limits.Batch) error {
		b.Max = 1
		return r.Sync(context.Background(), &b, &reply)
	}
	if strings.HasPrefix(does, "hold") {
		if err := sync(limits.Batch{Claims: []limits.Claim{claimOn(1, one, "host/h")}}); err != nil {
			return err
		}
		fmt.Println("cause", reply.Verdicts[0].Cause)
		<-end
		return r.Close()
	}
	three := limits.Limit{Concurrency: 3}
	for id := 1; ; {
		c := claimOn(id, three, [][]string{{"host/h"}, {"account/x"}, {"host/h", "account/x"}}[id%3]...)
		if err := sync(limits.Batch{Claims: []limits.Claim{c}}); err != nil {
			return err
		}
		wait := poll
		if reply.Verdicts[0].Cause == limits.Granted {
			wait = time.Duration(rand.IntN(20)) * time.Millisecond
		}
		select {
		case <-end:
			return r.Close()
		case <-time.After(wait):
		}
		if reply.Verdicts[0].Cause == limits.Granted {
			id++
			if err := sync(limits.Batch{Releases: []limits.ClaimID{c.ID}}); err != nil {
				return err
			}
		}
	}
}

// process is a member that is a process of its own.
type process struct {
	*exec.Cmd
	out *bufio.Scanner
}

func startMember(t *testing.T, url, does string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), "TEST_MEMBER="+url, "TEST_MEMBER_DOES="+does)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if _, err := p.StdinPipe(); err != nil { // never written to: ends with this process
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func (p *process) signal(s syscall.Signal) { _ = p.Process.Signal(s) }

// holder starts a process that holds the permit of host/h.
func holder(t *testing.T, url, does string) *process {
	t.Helper()
	p := startMember(t, url, does)
	if !p.out.Scan() || p.out.Text() != "cause 0" {
		t.Fatalf("the holder says %q, want a grant", p.out.Text())
	}
	return p
}

// TestKilledHolder wants a killed process's permit back within a lease and a
// heartbeat, and an honest call's not at all.
func TestKilledHolder(t *testing.T) {
	s := newServer(t)
	url, does, timing := s.url(s.fresh()), "hold", short
	if long() {
		does, timing = "hold as usual", usual
	}
	p := holder(t, url, does)
	r := mustOpen(t, url, timing)
	for start := time.Now(); time.Since(start) < 3*timing.ttl; {
		expect(t, "while an honest call lasts", permit, ask(t, r, claimOn(1, one, "host/h")))
		<-time.After(timing.ttl / 8)
	}
	p.kill()
	took := eventually(t, r, claimOn(1, one, "host/h"))
	if least, most := timing.ttl/2, timing.ttl+timing.ttl/4+poll+time.Second; took < least || took > most {
		t.Errorf("the permit of a killed process came back after %v, want %v to %v", took, least, most)
	}
	t.Logf("after %v, of a lease of %v", took, timing.ttl)
}

// TestKilledHolderAmongShortLives has a killed process's permit come back though nobody
// stays for as long as a lease.
func TestKilledHolderAmongShortLives(t *testing.T) {
	s := newServer(t)
	url := s.url(s.fresh())
	p := holder(t, url, "hold")
	p.kill()
	for start := time.Now(); time.Since(start) < 4*short.ttl; <-time.After(short.ttl / 10) {
		r := mustOpen(t, url, short)
		ask(t, r, claimOn(1, one, "host/other"))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "four leases later", granted, ask(t, mustOpen(t, url, short), claimOn(1, one, "host/h")))
}

// TestStoppedHolder stops a process past its lease: its permit is another's then. When
// it goes on it takes its call up again, and nothing starts until both calls but one
// have ended.
func TestStoppedHolder(t *testing.T) {
	s := newServer(t)
	url := s.url(s.fresh())
	p := holder(t, url, "hold")
	r := mustOpen(t, url, short)
	p.signal(syscall.SIGSTOP)
	eventually(t, r, claimOn(1, one, "host/h"))
	p.signal(syscall.SIGCONT)
	if !p.out.Scan() || !strings.Contains(p.out.Text(), "others may have used") {
		t.Errorf("the stopped process says %q", p.out.Text())
	}
	host := claimOn(1, one, "host/h").Needs[0].Key
	for _, step := range []struct {
		batch limits.Batch
		inUse int64
	}{{limits.Batch{}, 2}, {limits.Batch{Releases: []limits.ClaimID{1}}, 1}} {
		say(t, r, step.batch)
		all, err := Look(context.Background(), url)
		if err != nil || len(all) != 1 || all[0].Key != host || all[0].InUse != step.inUse {
			t.Errorf("Look = %+v, %v, want %d in use", all, err, step.inUse)
		}
	}
	expect(t, "while the stopped one's call lasts", permit, ask(t, r, claimOn(2, one, "host/h")))
	p.kill()
	eventually(t, r, claimOn(2, one, "host/h"))
}

// TestRandomKills kills processes in the midst of whatever they do: what is in use is
// what the living hold, and nothing is left of the dead.
func TestRandomKills(t *testing.T) {
	kills := 10
	if long() {
		kills = 100
	}
	s := newServer(t)
	url := s.url(s.fresh())
	var all []*process
	for range 8 {
		all = append(all, startMember(t, url, "work"))
	}
	for range kills {
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		at := rand.IntN(len(all))
		all[at].kill()
		all[at] = startMember(t, url, "work")
		wantBalance(t, url)
	}
	for _, p := range all {
		p.kill()
	}
	r := mustOpen(t, url, short)
	three := limits.Limit{Concurrency: 3}
	eventually(t, r, claimOn(1, three, "host/h", "account/x"))
	eventually(t, r, claimOn(2, three, "host/h", "account/x"))
	eventually(t, r, claimOn(3, three, "host/h", "account/x"))
	var keys []string
	for start := time.Now(); len(keys) != 5 && time.Since(start) < 3*short.ttl; <-r.Changed() {
		say(t, r, limits.Batch{})
		keys = s.client.Keys(context.Background(), "*").Val()
		ask(t, r, claimOn(4, three, "host/h")) // so that it looks again
	}
	if len(keys) != 5 {
		t.Errorf("left of %d processes: %q, want the namespace, the leases, two keys and one member", kills+8, keys)
	}
}

// wantBalance wants each key's permits in use to be those that members hold, in one
// look.
func wantBalance(t *testing.T, url string) {
	t.Helper()
	client, space, err := connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	value, err := client.Eval(context.Background(), `
		local held, out = {}, {}
		for _, name in ipairs(redis.call('ZRANGE', KEYS[1] .. ':leases', 0, -1)) do
			local all = redis.call('HGETALL', KEYS[1] .. ':member:' .. name)
			for i = 1, #all, 2 do
				for _, key in ipairs(tonumber(all[i]) and cmsgpack.unpack(all[i + 1]) or {}) do
					held[key] = (held[key] or 0) + 1
				end
			end
		end
		for _, key in ipairs({'host/h', 'account/x'}) do
			local text = redis.call('GET', KEYS[1] .. ':key:' .. key)
			out[#out + 1] = text and cmsgpack.unpack(text)[6] or 0
			out[#out + 1] = held[key] or 0
		end
		return out`, []string{space}).Int64Slice()
	if err != nil {
		t.Fatal(err)
	}
	if value[0] != value[1] || value[2] != value[3] || value[0] > 3 || value[2] > 3 {
		t.Errorf("in use and held, of a host and an account: %d, want pairs of up to three", value)
	}
}

// TestStoreDoesNotGrow has 300 members come, use keys of their own, and go.
func TestStoreDoesNotGrow(t *testing.T) {
	s := newServer(t)
	url := s.url(s.fresh())
	full := limits.Limit{Concurrency: 1, Rate: limits.Rate{Tokens: 1, Per: 1}, Burst: 1}
	for i := range 300 {
		r := mustOpen(t, url, usual)
		ask(t, r, claimOn(1, full, "host/h", fmt.Sprintf("account/%d", i)), claimOn(2, full, "host/h"))
		if i%2 == 0 {
			say(t, r, limits.Batch{Releases: []limits.ClaimID{1}})
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if keys := s.client.Keys(context.Background(), "*").Val(); len(keys) > 1 {
		t.Errorf("left: %q, want the namespace alone", keys)
	}
}
