//go:build linux

package folder

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

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
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, err := Open(b.TempDir(), Options{})
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

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}
