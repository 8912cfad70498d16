package limits_test

import (
	"testing"
	"time"

	"agentlimit/limits"
)

func TestTimeAdd(t *testing.T) {
	tests := []struct {
		name string
		t    limits.Time
		d    time.Duration
		want limits.Time
	}{
		{"whole microseconds", 5, 3 * time.Microsecond, 8},
		{"a part of one counts as a whole, so that nothing is early", 5, 1, 6},
		{"backwards too", 5, -1500 * time.Nanosecond, 4},
		{"never stays never", limits.Never, time.Hour, limits.Never},
		{"what is too late is never", limits.Never - 5, 6 * time.Microsecond, limits.Never},
		{"just in time", limits.Never - 5, 5 * time.Microsecond, limits.Never},
	}
	for _, tt := range tests {
		if got := tt.t.Add(tt.d); got != tt.want {
			t.Errorf("%s: %d.Add(%v) = %d, want %d", tt.name, tt.t, tt.d, got, tt.want)
		}
	}
}

func TestTimeSub(t *testing.T) {
	const most = time.Duration(1<<63-1) / time.Microsecond * time.Microsecond
	tests := []struct {
		name string
		t, u limits.Time
		want time.Duration
	}{
		{"forwards", 8, 5, 3 * time.Microsecond},
		{"backwards", 5, 8, -3 * time.Microsecond},
		{"until never, as far as a duration reaches", limits.Never, 5, most},
		{"from never", 5, limits.Never, -most},
	}
	for _, tt := range tests {
		if got := tt.t.Sub(tt.u); got != tt.want {
			t.Errorf("%s: %d.Sub(%d) = %v, want %v", tt.name, tt.t, tt.u, got, tt.want)
		}
	}
}

func TestTimeOfIsNotBefore(t *testing.T) {
	tests := []struct {
		name string
		in   time.Time
		want limits.Time
	}{
		{"a whole microsecond", time.Unix(1, 5000), 1_000_005},
		{"a nanosecond more", time.Unix(1, 5001), 1_000_006},
		{"before the epoch", time.Unix(-1, 1), -999_999},
	}
	for _, tt := range tests {
		if got := limits.TimeOf(tt.in); got != tt.want || got.Wall().Before(tt.in) {
			t.Errorf("%s: TimeOf(%v) = %d, want %d", tt.name, tt.in, got, tt.want)
		}
	}
}
