package runner_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
)

// BenchmarkMakespan runs 400 calls of 50 to 150 ms, for 4 hosts and 8 accounts,
// in real time. It reports how long that took over the lower bound: what the
// busiest key has to do over its cap. Each run has other calls.
func BenchmarkMakespan(b *testing.B) {
	for _, order := range []string{"sorted", "shuffled"} {
		b.Run(order, func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				rng := rand.New(rand.NewPCG(uint64(len(ratios)), 5))
				js, takes, bound := work(rng)
				if order == "shuffled" {
					shuffle(rng, js)
				}
				began := time.Now()
				runSleeping(b, js, takes)
				ratios = append(ratios, float64(time.Since(began))/float64(bound))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "makespan/bound")
		})
	}
}

// work returns calls sorted by host, how long each takes, and the least time in
// which they can be made.
func work(rng *rand.Rand) (js []*jobspec.Job, takes map[string]time.Duration, bound time.Duration) {
	takes = make(map[string]time.Duration)
	busy := make(map[limits.Key]time.Duration)
	for i := range 400 {
		j := job(i, string(rune('A'+i/100)), string(rune('a'+rng.IntN(8))))
		d := 50*time.Millisecond + time.Duration(rng.IntN(100))*time.Millisecond
		js, takes[j.ID] = append(js, j), d
		host, account := limits.Key{Kind: limits.Host, Name: j.Host}, limits.Key{Kind: limits.Account, Name: j.Account}
		busy[host] += d / 4
		busy[account] += d / 2
		bound = max(bound, busy[host], busy[account])
	}
	return js, takes, bound
}

// shuffle puts the calls into any order.
func shuffle(rng *rand.Rand, js []*jobspec.Job) {
	rng.Shuffle(len(js), func(i, k int) { js[i], js[k] = js[k], js[i] })
	for i, j := range js {
		j.Seq = int64(i)
	}
}

// runSleeping makes calls that only take their time.
func runSleeping(b *testing.B, js []*jobspec.Job, takes map[string]time.Duration) {
	sleeping := caller(func(_ context.Context, a call.Attempt) call.Outcome {
		busy(takes[a.Job.ID])
		return call.Outcome{Kind: call.OK}
	})
	table := limitsOf(b, `{hosts: {"*": {concurrency: 4}}, accounts: {"*": {concurrency: 2}}}`)
	w := newWorld(table, sleeping, js...)
	if err := runner.Run(b.Context(), w.Config); err != nil {
		b.Fatal(err)
	}
	if len(w.sink.records) != len(js) {
		b.Fatalf("%d records of %d jobs", len(w.sink.records), len(js))
	}
}
