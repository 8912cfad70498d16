//go:build unix

package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentlimit/limits"
)

// short is a timing for tests that wait until a lease has ended.
var short = timing{ttl: 500 * time.Millisecond, learn: 300 * time.Millisecond}

var (
	one    = limits.Limit{Concurrency: 1}
	bucket = limits.Limit{Concurrency: 2, Rate: limits.Rate{Tokens: 1, Per: 3600e6}, Burst: 3}

	granted = []limits.Cause{limits.Granted}
	permit  = []limits.Cause{limits.Permit}
	tokens  = []limits.Cause{limits.Tokens}
)

// eventually asks for the claim, as a refusal says, until it is granted, and returns
// how long that took.
func eventually(t testing.TB, r *Redis, c limits.Claim) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 30*time.Second {
		batch, reply := limits.Batch{Max: 1, Claims: []limits.Claim{c}}, limits.Reply{}
		err := r.Sync(context.Background(), &batch, &reply)
		wait := poll
		if err == nil && reply.Verdicts[0].Cause == limits.Granted {
			return time.Since(start)
		} else if err == nil && reply.Verdicts[0].At > 0 {
			wait = max(0, reply.Verdicts[0].At.Sub(r.Now()))
		}
		select {
		case <-r.Changed():
		case <-time.After(wait):
		}
	}
	t.Fatalf("claim %+v is not granted", c)
	return 0
}

// wire is a way to a server that can lose what the server says.
type wire struct {
	net.Listener
	lose atomic.Int64 // so many replies to batches are lost from now on
}

func newWire(t *testing.T, server string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { w.carry(in, out) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return w
}

func (w *wire) carry(in, out net.Conn) {
	defer func() { _, _ = in.Close(), out.Close() }()
	var asked atomic.Bool
	go func() {
		defer func() { _ = out.Close() }()
		_, _ = io.Copy(io.MultiWriter(watch(func(b []byte) {
			if strings.Contains(string(b), "evalsha") && !strings.Contains(string(b), "beat") {
				asked.Store(true)
			}
		}), out), in)
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := out.Read(buf)
		if err != nil {
			return
		}
		if asked.Swap(false) && w.lose.Add(-1) >= 0 {
			return
		}
		if _, err := in.Write(buf[:n]); err != nil {
			return
		}
	}
}

type watch func([]byte)

func (w watch) Write(b []byte) (int, error) { w(b); return len(b), nil }

// TestLostReply loses the reply to a batch that was decided.
func TestLostReply(t *testing.T) {
	for _, tt := range []struct {
		name string
		lost int64
		join bool // the batch is the first that Redis hears after it forgot the member
	}{
		{"once, so that the repetition gets the same reply", 1, false},
		{"twice, so that the caller has to say the batch again", 2, false},
		{"once, as the member joined again with it", 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			w := newWire(t, s.addr())
			space := s.fresh()
			r := mustOpen(t, "redis://"+w.Addr().String()+"?namespace="+space, usual)
			ask(t, r, claimOn(1, bucket, "host/h"))
			if tt.join {
				if err := s.client.ZRem(context.Background(), r.space+":leases", r.name).Err(); err != nil {
					t.Fatal(err)
				}
				_, _ = r.speak(context.Background(), &request{Op: "beat"})
				r.epoch++ // not what Redis has
			}
			w.lose.Store(tt.lost)
			batch := limits.Batch{Max: 9, Refunds: []limits.ClaimID{1}, Claims: []limits.Claim{claimOn(2, bucket, "host/h"), claimOn(3, bucket, "host/h")}}
			var reply limits.Reply
			err := r.Sync(context.Background(), &batch, &reply)
			if lost := new(limits.Lost); errors.As(err, &lost) != (tt.lost > 1) {
				t.Fatalf("Sync = %v", err)
			} else if err != nil && (lost.Until < r.Now() || lost.Until > r.Now().Add(usual.ttl)) {
				t.Errorf("lease lost at %d, which is in %v", lost.Until, lost.Until.Sub(r.Now()))
			}
			if err != nil {
				say(t, r, batch)
			}
			expect(t, "both permits are taken", permit, ask(t, r, claimOn(4, bucket, "host/h")))
			say(t, r, limits.Batch{Withdrawn: []limits.ClaimID{4}, Releases: []limits.ClaimID{2, 3}})
			expect(t, "one of three tokens is left", []limits.Cause{limits.Granted, limits.Tokens},
				ask(t, r, claimOn(5, bucket, "host/h"), claimOn(6, bucket, "host/h")))
		})
	}
}

// A claim that was granted in a reply that never came is given up by its caller.
func TestWithdrawnAfterALostReply(t *testing.T) {
	s := newServer(t)
	w := newWire(t, s.addr())
	r := mustOpen(t, "redis://"+w.Addr().String()+"?namespace="+s.fresh(), usual)
	w.lose.Store(2)
	batch := limits.Batch{Max: 9, Claims: []limits.Claim{claimOn(1, bucket, "host/h")}}
	if err := r.Sync(context.Background(), &batch, &limits.Reply{}); err == nil {
		t.Fatal("Sync without a reply did not fail")
	}
	say(t, r, limits.Batch{Withdrawn: []limits.ClaimID{1}})
	var all []limits.Claim
	for id := 2; id < 5; id++ {
		all = append(all, claimOn(id, limits.Limit{Concurrency: 3, Rate: bucket.Rate, Burst: 3}, "host/h"))
	}
	expect(t, "all permits and tokens", slices.Repeat(granted, 3), ask(t, r, all...))
}

// TestStall stops the server for two seconds.
func TestStall(t *testing.T) {
	s := newServer(t)
	url := s.url(s.fresh())
	a, b := mustOpen(t, url, short), mustOpen(t, url, short)
	expect(t, "a's call", granted, ask(t, a, claimOn(1, one, "host/h")))
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) })
	expect(t, "b's, after four lease times in which nobody was heard", permit, ask(t, b, claimOn(1, one, "host/h")))
	say(t, a, limits.Batch{Releases: []limits.ClaimID{1}})
	eventually(t, b, claimOn(1, one, "host/h"))
}

// TestServerLost has the server lose what it knows while a call is under way: the call
// keeps its permit, and all wait until its process has said so.
func TestServerLost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []string
		lose    func(s *server)
	}{
		{"killed, and started without its data", nil, func(s *server) { s.kill(); s.start() }},
		{"killed, and started with all of its data", []string{"--appendonly", "yes"}, func(s *server) { s.kill(); s.start() }},
		{"killed, and started with old data", []string{"--dbfilename", "old"}, func(s *server) { s.kill(); s.start() }},
		{"emptied", nil, func(s *server) { s.client.FlushAll(context.Background()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, tt.options...)
			url := s.url(s.fresh())
			timing := timing{ttl: usual.ttl, learn: 600 * time.Millisecond}
			var said []string
			a, err := open(context.Background(), url, Options{Say: func(m string) { said = append(said, m) }}, timing)
			if err != nil {
				t.Fatal(err)
			}
			b := mustOpen(t, url, timing)
			if err := s.client.Save(context.Background()).Err(); err != nil { // what "old" is
				t.Fatal(err)
			}
			expect(t, "a's call", granted, ask(t, a, claimOn(1, bucket, "host/h"), claimOn(2, one, "host/i"))[:1])
			tt.lose(s)
			start := time.Now()
			batch, reply := limits.Batch{Max: 1, Claims: []limits.Claim{claimOn(1, one, "host/j")}}, limits.Reply{}
			for b.Sync(context.Background(), &batch, &reply) != nil {
				if time.Since(start) > 20*time.Second {
					t.Fatal("the server is not found again")
				}
			}
			if v := reply.Verdicts[0]; v.Cause != limits.Permit || v.At.Sub(reply.Now) < 100*time.Millisecond {
				t.Errorf("while Redis learns: %+v at %d", v, reply.Now)
			}
			expect(t, "a while Redis learns", permit, ask(t, a, claimOn(3, one, "host/j")))
			say(t, a, limits.Batch{Withdrawn: []limits.ClaimID{3}})
			eventually(t, b, claimOn(1, one, "host/j"))
			expect(t, "b on the key that a holds", permit, ask(t, b, claimOn(2, one, "host/i")))
			expect(t, "b on the bucket of which nothing is known", tokens, ask(t, b, claimOn(3, bucket, "host/h")))
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if !contains(said, "nothing starts for") {
				t.Errorf("said %q", said)
			}
			eventually(t, b, claimOn(2, one, "host/i"))
		})
	}
}
