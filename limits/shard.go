package limits

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// Shard is one of several runs that share the jobs of a file, and limits that
// nobody else keeps for them. The zero Shard is the only one.
type Shard struct{ Index, Of int64 } // Index is from 1

// Has reports whether the job of that id is the shard's: every id is exactly one's.
func (s Shard) Has(id string) bool {
	if s.Of <= 1 {
		return true
	}
	h := fnv.New64a()
	io.WriteString(h, id)
	return h.Sum64()%uint64(s.Of) == uint64(s.Index-1)
}

// errPart is why a limit cannot be split into so many parts.
var errPart = errors.New("the part of a shard would be 0: share a coordinator instead")

// part returns the shard's part of a whole number. All parts together are the
// whole.
func (s Shard) part(whole int64) (int64, error) {
	part := whole / s.Of
	if s.Index <= whole%s.Of {
		part++
	}
	if part == 0 {
		return 0, errPart
	}
	return part, nil
}

// Part returns the shard's part of a limit: rate/n, and burst and concurrency in
// whole parts. It is an error if one of them would be 0, or the rate cannot be
// counted exactly.
func (s Shard) Part(l Limit) (Limit, error) {
	if s.Of <= 1 {
		return l, nil
	}
	var err error
	if l.Concurrency > 0 {
		if l.Concurrency, err = s.part(l.Concurrency); err != nil {
			return Limit{}, fmt.Errorf("concurrency: %w", err)
		}
	}
	if l.Rate == (Rate{}) {
		return l, nil
	}
	if l.Burst, err = s.part(l.Burst); err != nil {
		return Limit{}, fmt.Errorf("burst: %w", err)
	}
	common := gcd(l.Rate.Tokens, s.Of)
	tokens, times := l.Rate.Tokens/common, s.Of/common
	if l.Rate.Per > maxLevel/times {
		return Limit{}, errors.New("round the rate: a part of it cannot be counted exactly")
	}
	l.Rate = Rate{tokens, l.Rate.Per * times}
	return l, nil
}

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
