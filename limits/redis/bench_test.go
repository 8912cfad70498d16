//go:build unix

package redis

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

const callers = 64

// BenchmarkAdmission has 64 callers take and give back a permit of a host and of an
// account, and a token of the host's bucket, as the runner does: while a batch is
// under way, the next one forms.
func BenchmarkAdmission(b *testing.B) {
	s := newServer(b)
	r := mustOpen(b, s.url(s.fresh()), usual)
	left := int64(b.N)
	var next limits.ClaimID
	var waiting []limits.Claim
	var held []limits.ClaimID
	var reply limits.Reply
	hosts := limits.Limit{Concurrency: 100, Rate: limits.Rate{Tokens: 1, Per: 1}, Burst: 1000}
	accounts := limits.Limit{Concurrency: 100}
	for b.ResetTimer(); left > 0; {
		for len(waiting) < callers {
			next++
			name := strconv.Itoa(int(next) % 4)
			waiting = append(waiting, limits.Claim{ID: next, Rank: limits.Rank{Deadline: limits.Never, Seq: int64(next)}, Needs: []limits.Need{
				{Key: limits.Key{Kind: limits.Host, Name: "host-" + name + ".example.com"}, Limit: hosts, Cost: 1},
				{Key: limits.Key{Kind: limits.Account, Name: "account-" + name}, Limit: accounts},
			}})
		}
		batch := limits.Batch{Releases: held, Max: callers, Claims: waiting}
		if err := r.Sync(context.Background(), &batch, &reply); err != nil {
			b.Fatal(err)
		}
		held, waiting = nil, nil
		for i, v := range reply.Verdicts {
			if v.Cause == limits.Granted {
				held = append(held, batch.Claims[i].ID)
				left--
			} else {
				waiting = append(waiting, batch.Claims[i])
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
}

// BenchmarkRedisRate is a single bucket of redis_rate, with as many callers.
func BenchmarkRedisRate(b *testing.B) {
	s := newServer(b)
	client := redis.NewClient(&redis.Options{Addr: s.addr(), PoolSize: callers})
	defer func() { _ = client.Close() }()
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: 1e6, Burst: 1000, Period: 1e9}
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := limiter.Allow(context.Background(), "host", limit); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
}

// BenchmarkEvalsha is what redis-benchmark makes of a script that does next to
// nothing.
func BenchmarkEvalsha(b *testing.B) {
	s := newServer(b)
	sha, err := s.client.ScriptLoad(context.Background(), "return 1").Result()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	out, err := exec.Command("redis-benchmark", "-p", strconv.Itoa(s.port), "-c", strconv.Itoa(callers), "-n", strconv.Itoa(b.N),
		"-q", "EVALSHA", sha, "0").CombinedOutput()
	found := regexp.MustCompile(`([0-9.]+|inf) requests per second`).FindAllSubmatch(out, -1)
	if err != nil || len(found) == 0 {
		b.Fatalf("%v: %s", err, out)
	}
	rate, _ := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	b.ReportMetric(rate, "calls/s")
}
