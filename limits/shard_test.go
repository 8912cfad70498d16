package limits_test

import (
	"testing"

	"agentlimit/limits"
)

// TestShardParts splits limits so that all parts together are the whole, and none
// is nothing.
func TestShardParts(t *testing.T) {
	for _, test := range []struct {
		what  string
		limit limits.Limit
		of    int64
		fits  bool
	}{
		{"an even cap", limits.Limit{Concurrency: 8}, 4, true},
		{"a cap that leaves a rest", limits.Limit{Concurrency: 7}, 3, true},
		{"a cap for fewer than there are", limits.Limit{Concurrency: 2}, 3, false},
		{"a rate with room for all", limits.Limit{Rate: rate("10/s"), Burst: 5}, 4, true},
		{"a rate in lowest terms", limits.Limit{Rate: rate("4/s"), Burst: 4}, 4, true},
		{"a burst for fewer than there are", limits.Limit{Rate: rate("10/s"), Burst: 1}, 2, false},
		{"no limit", limits.Limit{}, 9, true},
		{"the only shard", limits.Limit{Concurrency: 1, Rate: rate("1/s"), Burst: 1}, 1, true},
	} {
		var caps, bursts int64
		failed := false
		for i := range test.of {
			part, err := limits.Shard{Index: i + 1, Of: test.of}.Part(test.limit)
			failed = failed || err != nil
			caps, bursts = caps+part.Concurrency, bursts+part.Burst
			// n parts of rate/n are the rate: tokens/per · n = whole.
			if err == nil && part.Rate.Tokens*test.of*test.limit.Rate.Per != test.limit.Rate.Tokens*part.Rate.Per {
				t.Errorf("%s: a part's rate is %v of %v", test.what, part.Rate, test.limit.Rate)
			}
		}
		if failed == test.fits || test.fits && (caps != test.limit.Concurrency || bursts != test.limit.Burst) {
			t.Errorf("%s: parts of %+v for %d: caps %d, bursts %d, failed %v", test.what, test.limit, test.of, caps, bursts, failed)
		}
	}
}

func rate(s string) limits.Rate {
	r, err := limits.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}
