package plan_test

import (
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/plan"
)

// BenchmarkPlan forecasts a million jobs of 10,000 keys, some of which are hot (Zipf),
// and of few. The figure is what one job costs from the source to its record.
func BenchmarkPlan(b *testing.B) {
	const jobs = 1_000_000
	for _, shape := range []struct {
		name            string
		hosts, accounts int
		most            int64
		global          int
	}{
		{"zipf-5000x5000", 5000, 5000, 2, 2000},
		{"zipf-9000x1000", 9000, 1000, 2, 2000},
		{"few-4x8", 4, 8, 8, 64},
	} {
		b.Run(shape.name, func(b *testing.B) {
			for b.Loop() {
				source := &generated{left: jobs, hosts: shape.hosts, accounts: shape.accounts, rng: rand.New(rand.NewPCG(1, 2))}
				cfg := runner.Config{
					Source: source, Global: shape.global, Queue: 10_000,
					Limits: func(limits.Key) limits.Limit { return limits.Limit{Concurrency: shape.most} },
				}
				takes := func(j *jobspec.Job) time.Duration { return time.Duration(50+j.Seq*31%100) * time.Millisecond }
				if _, err := plan.Make(cfg, 1e15, takes); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/jobs, "µs/job")
		})
	}
}

// generated is a source of random jobs, of which the first hosts and accounts have
// most.
type generated struct {
	left, hosts, accounts int
	rng                   *rand.Rand
}

func (g *generated) Next() (*jobspec.Job, error) {
	if g.left == 0 {
		return nil, io.EOF
	}
	g.left--
	pick := func(n int) string {
		return strconv.Itoa(min(n-1, int(math.Pow(float64(n), g.rng.Float64()))-1))
	}
	return &jobspec.Job{
		Seq: int64(g.left), ID: strconv.Itoa(g.left), Host: "h" + pick(g.hosts), Account: "a" + pick(g.accounts), Cost: 1,
		HTTP: &jobspec.HTTP{},
	}, nil
}

// Hidden reports false: nothing is.
func (*generated) Hidden() bool { return false }
