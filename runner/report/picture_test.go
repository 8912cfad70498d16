package report

import (
	"strings"
	"testing"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// TestPausesOfPairs shades a host half as high while one account of it was paused.
func TestPausesOfPairs(t *testing.T) {
	pair := limits.PairKey(rare.Name, "a")
	records := make([]results.Record, 3)
	for i, key := range []limits.Key{pair, rare} {
		records[i] = attempted(key.String(), rare.Name, began+limits.Time(4*i)*second, time.Second)
		records[i].Attempts[0].Hint = &results.Hint{Key: &key, Until: results.At(began + limits.Time(4*i+3)*second)}
	}
	records[2] = attempted("end", rare.Name, began+8*second, time.Second)
	for key, want := range map[limits.Key]string{rare: "0 1 0 2 0", {Kind: limits.Account, Name: "a"}: "0 1 0", limits.PairKey(rare.Name, "a"): "0 2 0", teamA: "0"} {
		_, at := reportOf(t, records...).paused(key)
		var got []string
		for v := range strings.FieldsSeq(strings.Trim(at, "[]")) {
			if n := len(got); n == 0 || got[n-1] != v {
				got = append(got, v)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("pauses of %v: %v, want %s", key, got, want)
		}
	}
}
