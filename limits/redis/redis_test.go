//go:build unix

package redis

import (
	"context"
	"testing"
	"time"

	"agentlimit/limits"
	"agentlimit/limits/conformance"
)

func TestConformance(t *testing.T) {
	s := newServer(t)
	members := func(t *testing.T, n int) []limits.Coordinator {
		url := s.url(s.fresh())
		var all []limits.Coordinator
		for range n {
			all = append(all, mustOpen(t, url, usual))
		}
		return all
	}
	conformance.Alone(t, members)
	conformance.Together(t, members)
}

// TestCluster has one node be all of a Cluster.
func TestCluster(t *testing.T) {
	s := newServer(t, "--cluster-enabled", "yes")
	ctx := context.Background()
	if err := s.client.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	url := s.url("test") + "&addr=" + s.addr()
	for start := time.Now(); s.client.Set(ctx, "up", "", 0).Err() != nil; {
		if time.Since(start) > 20*time.Second {
			t.Fatal("the Cluster does not come up")
		}
		<-time.After(10 * time.Millisecond)
	}
	s.aged("test", 1)
	a, b := mustOpen(t, url, usual), mustOpen(t, url, usual)
	expect(t, "a's call", granted, ask(t, a, claimOn(1, one, "host/h")))
	expect(t, "b's", permit, ask(t, b, claimOn(1, one, "host/h")))
	if all, err := Look(ctx, url); err != nil || len(all) != 1 || len(all[0].Members) != 2 {
		t.Errorf("Look = %+v, %v, want one key and two members", all, err)
	}
	say(t, a, limits.Batch{Releases: []limits.ClaimID{1}})
	<-b.Changed()
	expect(t, "b's after a's release", granted, ask(t, b, claimOn(1, one, "host/h")))
}

// TestLargeBatch is more than Lua takes as arguments of one call.
func TestLargeBatch(t *testing.T) {
	s := newServer(t)
	r := mustOpen(t, s.url(s.fresh()), usual)
	many := limits.Limit{Concurrency: 10_000}
	var batch limits.Batch
	for range 4 {
		batch.Claims, batch.Max = nil, 10_000
		for range 2_500 {
			id := len(batch.Releases) + 1
			batch.Claims = append(batch.Claims, claimOn(id, many, "host/h"))
			batch.Releases = append(batch.Releases, limits.ClaimID(id))
		}
		say(t, r, limits.Batch{Max: 10_000, Claims: batch.Claims})
	}
	s.client.FlushAll(context.Background())
	r.turn <- struct{}{}
	_, err := r.speak(context.Background(), &request{Op: "beat"})
	if <-r.turn; err != nil {
		t.Fatal(err)
	}
	expect(t, "while all is held", []limits.KeyStatus{{Key: batch.Claims[0].Needs[0].Key, Limit: many, InUse: 10_000,
		Members: []limits.MemberStatus{{Member: r.name, InUse: 10_000}}}}, mustLook(t, r))
	say(t, r, limits.Batch{Releases: batch.Releases})
	expect(t, "when all has come back", 0, len(mustLook(t, r)))
}

func mustLook(t *testing.T, r *Redis) []limits.KeyStatus {
	t.Helper()
	all, err := look(context.Background(), r.client, r.space)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
