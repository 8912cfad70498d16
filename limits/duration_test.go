package limits_test

import (
	"testing"
	"time"

	"agentlimit/limits"
)

func TestParseDuration(t *testing.T) {
	tests := []struct {
		name, in string
		want     time.Duration
	}{
		{"seconds", "30s", 30 * time.Second},
		{"a decimal number", "1.5m", 90 * time.Second},
		{"several units", "1h30m", 90 * time.Minute},
		{"a small unit", "250ms", 250 * time.Millisecond},
		{"a day has 24 hours", "1d", 24 * time.Hour},
		{"days and more", "1d12h", 36 * time.Hour},
		{"zero with a unit", "0s", 0},
		{"zero days", "0d", 0},
		{"a hundred years", "36500d", 36500 * 24 * time.Hour},
	}
	for _, tt := range tests {
		if got, err := limits.ParseDuration(tt.in); got != tt.want || err != nil {
			t.Errorf("%s: ParseDuration(%q) = %v, %v, want %v", tt.name, tt.in, got, err, tt.want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	const unit, most = "want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d", "want a duration of at most 100 years"
	tests := []struct{ name, in, want string }{
		{"nothing", "", unit},
		{"a bare number: its unit would be a guess", "30", unit},
		{"zero alone", "0", unit},
		{"a clock's spelling", "1:30", unit},
		{"a minus", "-5s", unit},
		{"a minus behind days", "1d-5s", unit},
		{"a minus within", "1h-5m", unit},
		{"a plus", "+5s", unit},
		{"a unit nobody knows", "2w", unit},
		{"a part of a day", "1.5d", unit},
		{"days at the end", "12h1d", unit},
		{"a bare number behind days", "1d0", unit},
		{"a space in front", " 5s", unit},
		{"a space between", "5 s", unit},
		{"a word", "tomorrow", unit},
		{"more than a hundred years", "36501d", most},
		{"more days than a number can hold", "99999999999999999999d", most},
		{"more with the rest than a number can hold", "36500d2562047h", most},
		{"more hours than a number can hold", "2562048h", unit},
	}
	for _, tt := range tests {
		if got, err := limits.ParseDuration(tt.in); err == nil || err.Error() != tt.want || got != 0 {
			t.Errorf("%s: ParseDuration(%q) = %v, %v, want 0 and %q", tt.name, tt.in, got, err, tt.want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"30s", "1.5m", "1d12h", "-1s", "36500d2562047h", "9223372036854775807ns", "1d", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := limits.ParseDuration(s)
		if d < 0 || err != nil && d != 0 {
			t.Fatalf("ParseDuration(%q) = %v, %v", s, d, err)
		}
		if err != nil {
			return
		}
		if again, err := limits.ParseDuration(d.String()); again != d || err != nil {
			t.Fatalf("ParseDuration(%q) = %v, which is read as %v, %v", s, d, again, err)
		}
	})
}
