package limits

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Rate is a refill rate of Tokens per Per microseconds, in lowest terms. The
// zero Rate means that nothing limits the rate.
type Rate struct {
	Tokens int64
	Per    int64 // microseconds
}

// MaxCost is above every cost that a bucket can hold.
const MaxCost = maxLevel

// maxLevel bounds a bucket's level in units of token·Per, one token above its
// capacity: a coordinator may count in doubles, which are exact up to 2^53.
const maxLevel = 1 << 53

var (
	errRate = errors.New("want N/unit, such as 10/s, 600/m or 5/15s")

	plainNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	unitMicros  = map[string]int64{"s": 1e6, "m": 60e6, "h": 3600e6, "d": 86400e6}
)

// ParseRate reads "N/unit": N a decimal number above zero, unit one of s, m, h,
// d or a duration such as 15s. On error the Rate is zero.
func ParseRate(s string) (Rate, error) {
	count, unit, found := strings.Cut(s, "/")
	if !found || len(count) > 30 || !plainNumber.MatchString(count) {
		return Rate{}, errRate
	}
	per, known := unitMicros[unit]
	if !known {
		d, err := ParseDuration(unit)
		if err != nil || d <= 0 || d%time.Microsecond != 0 {
			return Rate{}, errRate
		}
		per = d.Microseconds()
	}
	n, _ := new(big.Rat).SetString(count)
	if n.Sign() == 0 {
		return Rate{}, fmt.Errorf("a rate is above zero; %w", errRate)
	}
	n.Quo(n, new(big.Rat).SetInt64(per))
	if !n.Num().IsInt64() || !n.Denom().IsInt64() || n.Num().Int64() > maxLevel || n.Denom().Int64() > maxLevel {
		return Rate{}, errors.New("round the rate: it cannot be counted exactly")
	}
	return Rate{Tokens: n.Num().Int64(), Per: n.Denom().Int64()}, nil
}

// String spells the rate with the smallest unit that shows it as a whole
// number, such as "10/s", "30/m" for 0.5/s, or "1/7s" if none does. [ParseRate]
// reads it back; the zero Rate is "none".
func (r Rate) String() string {
	if r == (Rate{}) {
		return "none"
	}
	for _, unit := range []string{"s", "m", "h", "d"} {
		if us := unitMicros[unit]; us%r.Per == 0 && r.Tokens <= math.MaxInt64/(us/r.Per) {
			return strconv.FormatInt(us/r.Per*r.Tokens, 10) + "/" + unit
		}
	}
	return strconv.FormatInt(r.Tokens, 10) + "/" + (time.Duration(r.Per) * time.Microsecond).String()
}

// DefaultBurst returns what refills in 20 ms, at least 1: real timers are late
// by some milliseconds, so a bucket of 1 cannot hold a high rate.
func (r Rate) DefaultBurst() int64 {
	if r.Per == 0 {
		return 0
	}
	const span = 20_000 // microseconds
	hi, lo := bits.Mul64(uint64(r.Tokens), span)
	if hi >= uint64(r.Per) {
		return maxLevel
	}
	n, _ := bits.Div64(hi, lo, uint64(r.Per))
	return int64(max(1, min(n, maxLevel)))
}

// Limit is what one key allows. The zero Limit allows everything.
type Limit struct {
	Concurrency int64 // attempts under way at once; 0: no cap
	Rate        Rate  // refill of the bucket; zero: no bucket
	Burst       int64 // capacity of the bucket in tokens; 0 without a rate
}

// String spells the limit in a few words, such as "concurrency 4, rate 10/s, burst
// 20", or "no limit".
func (l Limit) String() string {
	var parts []string
	if l.Concurrency > 0 {
		parts = append(parts, "concurrency "+strconv.FormatInt(l.Concurrency, 10))
	}
	if l.Rate.Per > 0 {
		parts = append(parts, "rate "+l.Rate.String(), "burst "+strconv.FormatInt(l.Burst, 10))
	}
	if parts == nil {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

// Validate reports a bucket that cannot be counted in whole numbers.
func (l Limit) Validate() error {
	if l.Rate.Per > 0 && l.Burst >= (maxLevel-1)/l.Rate.Per {
		return errors.New("round the rate or lower the burst: the bucket cannot be counted exactly")
	}
	return nil
}
