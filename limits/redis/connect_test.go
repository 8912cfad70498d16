//go:build unix

package redis

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

func TestConnect(t *testing.T) {
	for _, tt := range []struct {
		about, url, kind, space, err string
	}{
		{"one server", "redis://user:secret@localhost:1/3", "*redis.Client", "{agentlimit:default}", ""},
		{"a namespace", "redis://localhost?namespace=ci&dial_timeout=1s", "*redis.Client", "{agentlimit:ci}", ""},
		{"with TLS", "rediss://localhost?namespace=a%2Fb", "*redis.Client", "{agentlimit:a/b}", ""},
		{"Sentinel", "redis://localhost?master_name=m&addr=other:2&namespace=ci", "*redis.Client", "{agentlimit:ci}", ""},
		{"a Cluster", "rediss://localhost?addr=other:2", "*redis.ClusterClient", "{agentlimit:default}", ""},
		{"another scheme", "http://localhost", "", "", "redis: invalid URL scheme: http"},
		{"an option that is none", "redis://localhost?nonsense=1", "", "", "redis: unexpected option: nonsense"},
		{"a port that is none, beside a password", "redis://user:secret@localhost:x/", "", "", `invalid port ":x" after host`},
		{"an empty namespace", "redis://localhost?namespace=", "", "", `"": want a namespace without braces, such as ?namespace=ci`},
		{"a namespace that would change the hash tag", "redis://localhost?namespace=a}b", "", "", `"a}b": want a namespace without braces, such as ?namespace=ci`},
	} {
		client, space, err := connect(tt.url)
		if err != nil {
			expect(t, tt.about+": error", tt.err, err.Error())
			continue
		}
		kind := "*redis.Client"
		if _, ok := client.(*redis.ClusterClient); ok {
			kind = "*redis.ClusterClient"
		}
		expect(t, tt.about, []string{tt.kind, tt.space, tt.err}, []string{kind, space, ""})
		_ = client.Close()
	}
}

// TestOpenFails has nobody listen, and the server want a password.
func TestOpenFails(t *testing.T) {
	s := newServer(t)
	if err := s.client.ConfigSet(context.Background(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ url, want string }{
		{"redis://:wrong-secret@" + s.addr(), "WRONGPASS"},
		{"redis://:wrong-secret@127.0.0.1:1/", "connection refused"},
	} {
		_, err := Open(context.Background(), tt.url, Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q) = %v, want %s and no secret", tt.url, err, tt.want)
		}
	}
}

func TestWarnOfEviction(t *testing.T) {
	for _, tt := range []struct {
		memory, policy string
		warned         bool
	}{{"0", "allkeys-lru", false}, {"100mb", "noeviction", false}, {"100mb", "volatile-ttl", true}} {
		s := newServer(t, "--maxmemory", tt.memory, "--maxmemory-policy", tt.policy)
		var said []string
		r, err := Open(context.Background(), s.url(s.fresh()), Options{Say: func(m string) { said = append(said, m) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil || contains(said, "noeviction") != tt.warned {
			t.Errorf("%+v: said %q, %v", tt, said, err)
		}
	}
}

// TestNewNamespace is where nothing is known: nobody is there to wait for, but who can
// tell?
func TestNewNamespace(t *testing.T) {
	s := newServer(t)
	var said []string
	r, err := Open(context.Background(), s.url("new"), Options{Say: func(m string) { said = append(said, m) }})
	if err != nil {
		t.Fatal(err)
	}
	start := r.Now()
	expect(t, "at first", []limits.Cause{limits.Permit, limits.Granted}, ask(t, r, claimOn(1, bucket, "host/h"), claimOn(2, one)))
	took := eventually(t, r, claimOn(3, one, "host/i"))
	if took < 2900*time.Millisecond || took > 10*time.Second {
		t.Errorf("the first call of a namespace starts after %v, want three seconds", took)
	}
	v := limits.Reply{}
	if err := r.Sync(context.Background(), &limits.Batch{Max: 1, Claims: []limits.Claim{claimOn(1, bucket, "host/h")}}, &v); err != nil {
		t.Fatal(err)
	}
	if hour := start.Add(time.Hour); v.Verdicts[0].Cause != limits.Tokens || v.Verdicts[0].At > hour || v.Verdicts[0].At < hour-1e6 {
		t.Errorf("a bucket that was empty at %d and gains a token an hour: %+v", start, v.Verdicts[0])
	}
	other := mustOpen(t, s.url("new"), usual)
	expect(t, "another process, which has nothing to learn", granted, ask(t, other, claimOn(1, one, "host/k")))
	if err := r.Close(); err != nil || !contains(said, "nothing starts for 3s") || len(said) != 1 {
		t.Errorf("said %q, %v", said, err)
	}
}
