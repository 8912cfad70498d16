package report

import (
	"math"
	"slices"
)

// Latency is how long the attempts on a host took, whatever came of them, in
// milliseconds.
type Latency struct {
	Host     string  `json:"host"` // empty: of jobs without one
	Attempts int     `json:"attempts"`
	P50      float64 `json:"p50_ms"`
	P90      float64 `json:"p90_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`

	took []float32 // sorted once measured
}

func (l *Latency) measure() {
	slices.Sort(l.took)
	l.Attempts = len(l.took)
	l.P50, l.P90, l.P99, l.Max = l.quantile(0.5), l.quantile(0.9), l.quantile(0.99), l.quantile(1)
}

// quantile returns the least time that no less than the part q took at most.
func (l *Latency) quantile(q float64) float64 {
	at := int(math.Ceil(q*float64(len(l.took)))) - 1
	return float64(l.took[max(0, at)])
}

// spread counts attempts by time, in n steps of equal factors from least to most.
func (l *Latency) spread(n int, least, most float64) []int64 {
	counts := make([]int64, n)
	for _, ms := range l.took {
		at := math.Log(max(least, float64(ms))/least) / math.Log(most/least)
		counts[min(int(at*float64(n)), n-1)]++
	}
	return counts
}
