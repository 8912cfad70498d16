package limits

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

var (
	errDuration = errors.New("want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d")

	days = regexp.MustCompile(`^([0-9]+)d`)
)

// ParseDuration reads a duration as [time.ParseDuration] does, and also whole
// days in front, such as 1d or 1d12h (a day has 24 hours). It takes no sign.
// A bare number is refused, 0 too: its unit would be a guess.
func ParseDuration(s string) (time.Duration, error) {
	var total time.Duration
	rest := s
	if m := days.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > 100*365 {
			return 0, errors.New("want a duration of at most 100 years")
		}
		total = time.Duration(n) * 24 * time.Hour
		if rest = s[len(m[0]):]; rest == "" {
			return total, nil
		}
	}
	if rest == "" || rest[0] == '-' || rest[0] == '+' || rest == "0" {
		return 0, errDuration
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, errDuration
	}
	if total += d; total < d {
		return 0, errors.New("want a duration of at most 100 years")
	}
	return total, nil
}
