//go:build linux || darwin

package folder

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"agentlimit/limits"
)

// batchOf claims n times, over twenty keys.
func batchOf(first limits.ClaimID, n int) (claims []limits.Claim) {
	limit := limits.Limit{Concurrency: 1000, Rate: limits.Rate{Tokens: 1, Per: 1}, Burst: 1e6}
	for i := range n {
		claims = append(claims, limits.Claim{
			ID: first + limits.ClaimID(i), Rank: limits.Rank{Deadline: limits.Never, Seq: int64(i)},
			Needs: []limits.Need{
				{Key: limits.Key{Kind: limits.Host, Name: "host" + strconv.Itoa(i%10) + ".example.com"}, Limit: limit, Cost: 1},
				{Key: limits.Key{Kind: limits.Account, Name: "team" + strconv.Itoa(i%10)}, Limit: limit, Cost: 1},
			},
		})
	}
	return claims
}

// BenchmarkAdmission has one process admit and release batches.
func BenchmarkAdmission(b *testing.B) {
	for _, n := range []int{1, 64} {
		for _, others := range []int{0, 15} {
			b.Run(fmt.Sprintf("%d-beside-%d", n, others), func(b *testing.B) {
				path := b.TempDir()
				for range others {
					f, err := Open(context.Background(), path, Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
				}
				f, err := Open(context.Background(), path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				admit(b, f, n)
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func admit(b *testing.B, f *Folder, n int) {
	var reply limits.Reply
	var batch limits.Batch
	admitted := 0
	for id := limits.ClaimID(1); b.Loop(); id += limits.ClaimID(n) {
		batch.Claims, batch.Max = batchOf(id, n), n
		if err := f.Sync(context.Background(), &batch, &reply); err != nil {
			b.Fatal(err)
		}
		batch.Releases = batch.Releases[:0]
		for i, v := range reply.Verdicts {
			if v.Cause == limits.Granted {
				admitted++
				batch.Releases = append(batch.Releases, batch.Claims[i].ID)
			}
		}
	}
	b.ReportMetric(float64(admitted)/b.Elapsed().Seconds(), "admissions/s")
}

// BenchmarkProcesses has several processes admit batches of 64 at once: fair is how
// much the slowest does for each that the fastest does.
func BenchmarkProcesses(b *testing.B) {
	for _, n := range []int{4, 16} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			span, sum, fair := 3*time.Second, 0, 0.0
			for b.Loop() {
				counts := race(b, "admitter", b.TempDir(), n, span)
				for _, c := range counts {
					sum += c
				}
				fair += float64(counts[0]) / float64(counts[n-1])
			}
			b.ReportMetric(float64(sum)/span.Seconds()/float64(b.N), "admissions/s")
			b.ReportMetric(fair/float64(b.N), "fair")
		})
	}
}
