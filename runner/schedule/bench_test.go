package schedule_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// BenchmarkSchedule runs whole batches on a simulated clock: the figure is what
// one job costs from Add to Release, its part of the simulation included.
func BenchmarkSchedule(b *testing.B) {
	for _, shape := range []struct {
		name            string
		hosts, accounts int
		zipf            bool
		cap             int64
	}{
		{"uniform-100x100", 100, 100, false, 4},
		{"uniform-5000x5000", 5000, 5000, false, 2},
		{"zipf-5000x5000", 5000, 5000, true, 2},
		{"zipf-9000x1000", 9000, 1000, true, 2},
		{"dense-10x10", 10, 10, false, 20},
	} {
		for _, jobs := range []int{100_000, 1_000_000} {
			b.Run(shape.name+"/"+strconv.Itoa(jobs), func(b *testing.B) {
				tab := table(b, entry{kind: limits.Host, pattern: "*", concurrency: shape.cap}, entry{kind: limits.Account, pattern: "*", concurrency: shape.cap})
				for range b.N {
					b.StopTimer()
					rng := rand.New(rand.NewPCG(1, 2))
					s := newSim(b, tab, 2000)
					calls := make([]*call, jobs)
					pick := func(n int) int {
						if !shape.zipf {
							return rng.IntN(n)
						}
						return min(n-1, int(math.Pow(float64(n), rng.Float64()))-1)
					}
					for i := range calls {
						calls[i] = &call{Job: schedule.Job{Seq: int64(i), Host: "h" + strconv.Itoa(pick(shape.hosts)), Account: "a" + strconv.Itoa(pick(shape.accounts))},
							takes: 50*ms + limits.Time(rng.IntN(100))*ms}
					}
					b.StartTimer()
					s.run(calls)
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(jobs), "µs/job")
					b.ReportMetric(float64(s.claims)/float64(jobs), "claims/job")
					b.ReportMetric(float64(s.now)/1e6, "makespan_s")
				}
			})
		}
	}
}
