package limits_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"agentlimit/limits"
)

const (
	usSecond = 1_000_000
	usMinute = 60 * usSecond
	usHour   = 60 * usMinute
	usDay    = 24 * usHour

	// bound is what a level stays below: doubles are exact up to it.
	bound = 1 << 53
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		name, in string
		want     limits.Rate
		spelled  string
	}{
		{"so many a second", "10/s", limits.Rate{Tokens: 1, Per: usSecond / 10}, "10/s"},
		{"a minute", "600/m", limits.Rate{Tokens: 1, Per: usSecond / 10}, "10/s"},
		{"an hour", "600/h", limits.Rate{Tokens: 1, Per: 6 * usSecond}, "10/m"},
		{"a day", "1/d", limits.Rate{Tokens: 1, Per: usDay}, "1/d"},
		{"less than one a second", "0.5/s", limits.Rate{Tokens: 1, Per: 2 * usSecond}, "30/m"},
		{"one in two seconds is the same", "1/2s", limits.Rate{Tokens: 1, Per: 2 * usSecond}, "30/m"},
		{"a unit of several seconds", "5/15s", limits.Rate{Tokens: 1, Per: 3 * usSecond}, "20/m"},
		{"a unit of several words", "10/1h30m", limits.Rate{Tokens: 1, Per: 9 * usMinute}, "160/d"},
		{"a unit of days", "3/7d", limits.Rate{Tokens: 1, Per: 7 * usDay / 3}, "1/56h0m0s"},
		{"one that no unit divides", "1/7s", limits.Rate{Tokens: 1, Per: 7 * usSecond}, "1/7s"},
		{"more than one a microsecond", "3000000/s", limits.Rate{Tokens: 3, Per: 1}, "3000000/s"},
		{"a third is what is typed, not rounded", "0.333333/s", limits.Rate{Tokens: 333333, Per: 1e12}, "333333/277h46m40s"},
		{"zeros in front and behind", "007.50/s", limits.Rate{Tokens: 3, Per: 400_000}, "450/m"},
		{"the largest that can be counted", "9007199254740992/1us", limits.Rate{Tokens: bound, Per: 1}, "9007199254740992/1µs"},
		{"its spelling", "9007199254740992/1µs", limits.Rate{Tokens: bound, Per: 1}, "9007199254740992/1µs"},
	}
	for _, tt := range tests {
		got, err := limits.ParseRate(tt.in)
		if got != tt.want || err != nil {
			t.Errorf("%s: ParseRate(%q) = %+v, %v, want %+v", tt.name, tt.in, got, err, tt.want)
		}
		if got.String() != tt.spelled {
			t.Errorf("%s: ParseRate(%q).String() = %q, want %q", tt.name, tt.in, got, tt.spelled)
		}
	}
	if got := (limits.Rate{}).String(); got != "none" {
		t.Errorf("Rate{}.String() = %q, want none", got)
	}
}

func TestParseRateRefuses(t *testing.T) {
	const form, zero, count = "want N/unit, such as 10/s, 600/m or 5/15s", "a rate is above zero; ", "round the rate: it cannot be counted exactly"
	tests := []struct{ name, in, want string }{
		{"a bare number: its unit would be a guess", "10", form},
		{"nothing", "", form},
		{"no number", "/s", form},
		{"no unit", "10/", form},
		{"a unit that is a number", "10/2", form},
		{"a long word for a minute", "10/min", form},
		{"words", "10 per second", form},
		{"a unit nobody knows", "10/fortnight", form},
		{"another case", "10/S", form},
		{"an exponent", "1e3/s", form},
		{"a plus", "+1/s", form},
		{"a minus", "-1/s", form},
		{"a comma", "1,5/s", form},
		{"a fraction", "1/3/s", form},
		{"a dot without digits in front", ".5/s", form},
		{"a dot without digits behind", "5./s", form},
		{"digits of other scripts", "١/s", form},
		{"a space in front", " 10/s", form},
		{"a space behind", "10/s ", form},
		{"a space between", "10/ s", form},
		{"zero", "0/s", zero + form},
		{"zero with a fraction", "0.00/s", zero + form},
		{"a span of zero", "1/0s", form},
		{"a negative span", "1/-2s", form},
		{"a part of a microsecond", "1/100ns", form},
		{"words for infinity", "Inf/s", form},
		{"too large to count", "9007199254740993/1us", count},
		{"too fine to count", "0.000000000000000001/d", count},
		{"a number longer than anybody means", strings.Repeat("9", 31) + "/s", form},
	}
	for _, tt := range tests {
		if got, err := limits.ParseRate(tt.in); err == nil || err.Error() != tt.want || got != (limits.Rate{}) {
			t.Errorf("%s: ParseRate(%q) = %+v, %v, want no rate and %q", tt.name, tt.in, got, err, tt.want)
		}
	}
}

// anyRate draws rates of every size, in lowest terms.
func anyRate(rng *rand.Rand) limits.Rate {
	draw := func() int64 { return 1 + rng.Int64N(1<<rng.IntN(54)) }
	r := big.NewRat(draw(), draw())
	return limits.Rate{Tokens: r.Num().Int64(), Per: r.Denom().Int64()}
}

func TestRateIsReadAsItIsSpelled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		want := anyRate(rng)
		if got, err := limits.ParseRate(want.String()); got != want || err != nil {
			t.Fatalf("ParseRate(%q) = %+v, %v, want %+v", want, got, err, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"10/s", "0.5/m", "5/15s", "1/1d12h", "9007199254740992/1us", "1e3/s", " 1/s", "0/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := limits.ParseRate(s)
		if err != nil {
			if r != (limits.Rate{}) {
				t.Fatalf("ParseRate(%q) = %+v with an error", s, r)
			}
			return
		}
		if r.Tokens <= 0 || r.Per <= 0 || r.Tokens > bound || r.Per > bound {
			t.Fatalf("ParseRate(%q) = %+v", s, r)
		}
		if again, err := limits.ParseRate(r.String()); again != r || err != nil {
			t.Fatalf("ParseRate(%q) = %+v, but its spelling %q is read as %+v, %v", s, r, r, again, err)
		}
	})
}

func TestDefaultBurst(t *testing.T) {
	for rate, want := range map[string]int64{
		"10/s":                 1,
		"49/s":                 1,
		"50/s":                 1,
		"99/s":                 1,
		"100/s":                2,
		"200/s":                4,
		"2000/s":               40,
		"600/m":                1,
		"1/d":                  1,
		"9007199254740992/1us": bound, // as large as it gets; Validate refuses it
	} {
		r, err := limits.ParseRate(rate)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.DefaultBurst(); got != want {
			t.Errorf("%s: DefaultBurst() = %d, want %d", rate, got, want)
		}
	}
	if got := (limits.Rate{}).DefaultBurst(); got != 0 {
		t.Errorf("without a rate: DefaultBurst() = %d, want 0", got)
	}
}

func TestDefaultBurstIsWhatRefillsInTwentyMilliseconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		r := anyRate(rng)
		want := new(big.Int).Mul(big.NewInt(r.Tokens), big.NewInt(20_000))
		want.Div(want, big.NewInt(r.Per))
		if want.Sign() == 0 {
			want.SetInt64(1)
		}
		if want.Cmp(big.NewInt(bound)) > 0 {
			want.SetInt64(bound)
		}
		if got := r.DefaultBurst(); got != want.Int64() {
			t.Fatalf("%+v.DefaultBurst() = %d, want %d", r, got, want)
		}
	}
}

func TestValidateKeepsLevelsCountable(t *testing.T) {
	tests := []struct {
		name  string
		limit limits.Limit
		fine  bool
	}{
		{"no rate", limits.Limit{Concurrency: 1}, true},
		{"an everyday bucket", limits.Limit{Rate: limits.Rate{Tokens: 3, Per: 2 * usSecond}, Burst: 90_000}, true},
		{"a burst and one more just below the bound", limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1}, Burst: bound - 2}, true},
		{"a burst and one more at the bound", limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1}, Burst: bound - 1}, false},
		{"the same for a long span", limits.Limit{Rate: limits.Rate{Tokens: 1, Per: usDay}, Burst: bound/usDay - 1}, true},
		{"one more", limits.Limit{Rate: limits.Rate{Tokens: 1, Per: usDay}, Burst: bound / usDay}, false},
		{"a span that is too long for any burst", limits.Limit{Rate: limits.Rate{Tokens: 1, Per: bound}, Burst: 1}, false},
	}
	for _, tt := range tests {
		if err := tt.limit.Validate(); (err == nil) != tt.fine {
			t.Errorf("%s: %+v.Validate() = %v", tt.name, tt.limit, err)
		}
	}
}

func ExampleParseRate() {
	for _, s := range []string{"10/s", "0.5/s", "5/15s"} {
		r, _ := limits.ParseRate(s)
		fmt.Printf("%s is %v, with a burst of %d\n", s, r, r.DefaultBurst())
	}
	// Output:
	// 10/s is 10/s, with a burst of 1
	// 0.5/s is 30/m, with a burst of 1
	// 5/15s is 20/m, with a burst of 1
}
