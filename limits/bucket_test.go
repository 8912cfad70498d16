package limits_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"agentlimit/limits"
)

func bucketOf(tokens, per, burst int64) limits.Limit {
	return limits.Limit{Rate: limits.Rate{Tokens: tokens, Per: per}, Burst: burst}
}

// take refills and pays.
func take(b *limits.Bucket, l limits.Limit, now limits.Time, cost int64) bool {
	b.Refill(l, now)
	return b.Take(l, cost)
}

// Capacity 3, refill 2 a second: three start at once, a fourth is refused a
// quarter of a second later, and exactly one is admitted after half a second.
func TestBucketOfThreeRefilledWithTwo(t *testing.T) {
	l := bucketOf(2, 1e6, 3)
	b := limits.Full(l, 1000)
	for i := range 3 {
		if !take(&b, l, 1000, 1) {
			t.Fatalf("take %d of 3 at the start was refused", i+1)
		}
	}
	if take(&b, l, 251_000, 1) {
		t.Error("a fourth was admitted after 0.25 s")
	}
	if got := b.Ready(l, 1); got != 501_000 {
		t.Errorf("Ready(1) = %d, want 501000, half a second after the start", got)
	}
	if take(&b, l, 500_999, 1) {
		t.Error("a fourth was admitted a microsecond before 0.5 s")
	}
	if !take(&b, l, 501_000, 1) || take(&b, l, 501_000, 1) {
		t.Error("after 0.5 s not exactly one was admitted")
	}
}

func TestBucketReady(t *testing.T) {
	l := bucketOf(3, 1e6, 10)
	tests := []struct {
		name        string
		level, cost int64
		want        limits.Time
	}{
		{"what is there is ready now", 4e6, 4, 100},
		{"a cost of nothing is ready now", 0, 0, 100},
		{"a third of a second is rounded up, never early", 0, 1, 100 + 333_334},
		{"the whole bucket", 0, 10, 100 + 3_333_334},
		{"what is almost there", 1e6 - 1, 1, 101},
		{"more than the bucket holds never is", 10e6, 11, limits.Never},
	}
	for _, tt := range tests {
		b := limits.Bucket{Level: tt.level, Last: 100}
		got := b.Ready(l, tt.cost)
		if got != tt.want {
			t.Errorf("%s: Bucket{%d, 100}.Ready(%d) = %d, want %d", tt.name, tt.level, tt.cost, got, tt.want)
		}
	}
}

func TestBucketAndItsClock(t *testing.T) {
	l := bucketOf(1, 1000, 5)
	tests := []struct {
		name        string
		level       int64
		last, now   limits.Time
		want, after int64 // at now, and a millisecond later
	}{
		{"time that passes adds exactly", 500, 0, 250, 750, 1750},
		{"idling fills the bucket and no more", 0, 0, 1 << 60, 5000, 5000},
		{"a step back adds nothing, and the clock goes on from there", 500, 1 << 60, 0, 500, 1500},
		{"the zero bucket is empty, its clock far back", 0, 0, 0, 0, 1000},
	}
	for _, tt := range tests {
		b := limits.Bucket{Level: tt.level, Last: tt.last}
		b.Refill(l, tt.now)
		if b.Level != tt.want {
			t.Errorf("%s: Refill(%d) of {%d, %d} = %d, want %d", tt.name, tt.now, tt.level, tt.last, b.Level, tt.want)
		}
		if b.Refill(l, tt.now+1000); b.Level != tt.after {
			t.Errorf("%s: a millisecond later the level is %d, want %d", tt.name, b.Level, tt.after)
		}
	}
}

// Near the largest limits that Validate lets pass no product may overflow, and
// every level stays below 2^53.
func TestBucketNearTheBound(t *testing.T) {
	for name, l := range map[string]limits.Limit{
		"a large burst":       bucketOf(1, 1, bound-2),
		"a large burst, fast": bucketOf(bound, 1, bound-2),
		"a long span":         bucketOf(1, bound/2-1, 1),
		"a long span, fast":   bucketOf(bound, bound/2-1, 1),
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b := limits.Full(l, 0)
		full := b.Level
		if full+l.Rate.Per >= bound {
			t.Errorf("%s: the level and a token, %d, reach 2^53", name, full+l.Rate.Per)
		}
		if !b.Take(l, l.Burst) || b.Level != 0 {
			t.Errorf("%s: after Take of all, the level is %d, want 0", name, b.Level)
		}
		ready := b.Ready(l, l.Burst)
		if b.Refill(l, ready-1); l.Rate.Tokens == 1 && b.Level != full-1 {
			t.Errorf("%s: a microsecond before it is full, the level is %d, want %d", name, b.Level, full-1)
		}
		for _, now := range []limits.Time{ready, limits.Never} {
			if b.Refill(l, now); b.Level != full {
				t.Errorf("%s: Refill(%d) = %d, want the capacity, %d", name, now, b.Level, full)
			}
		}
		if b.Refund(l, l.Burst); b.Level != full {
			t.Errorf("%s: a refund into the full bucket makes it %d, want %d", name, b.Level, full)
		}
	}
}

// anyBucket draws limits that Validate lets pass, large and small.
func anyBucket(rng *rand.Rand) limits.Limit {
	for {
		l := limits.Limit{Rate: anyRate(rng), Burst: 1 + rng.Int64N(1<<rng.IntN(30))}
		if l.Validate() == nil {
			return l
		}
	}
}

// step draws steps of a clock from microseconds to what fills the bucket
// several times.
func step(rng *rand.Rand, l limits.Limit) limits.Time {
	fill := l.Burst*l.Rate.Per/l.Rate.Tokens + 2
	return limits.Time(rng.Int64N(min(2*fill, 1+rng.Int64N(fill))))
}

// In every window at most burst + rate × time is spent. The clock idles and
// steps: back it mints nothing, forward no more than time that passed would.
func TestBucketKeepsEveryWindow(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		l := anyBucket(rng)
		now := limits.Time(1 << 50)
		b := limits.Full(l, now)
		var passed int64 // how far the clock went forward
		var at, spent []int64
		for range 200 {
			switch d := step(rng, l); rng.IntN(10) {
			case 0:
				now = max(0, now-d)
			case 1: // several at one moment
			default:
				now += d
				passed += int64(d)
			}
			if cost := 1 + rng.Int64N(1+rng.Int64N(l.Burst)); take(&b, l, now, min(cost, l.Burst)) {
				at, spent = append(at, passed), append(spent, min(cost, l.Burst))
			}
		}
		checkWindows(t, seed, l, at, spent)
	}
}

// checkWindows compares all windows, one by one, in numbers that cannot overflow:
// spent·Per ≤ burst·Per + Tokens·time.
func checkWindows(t *testing.T, seed uint64, l limits.Limit, at, spent []int64) {
	t.Helper()
	per := big.NewInt(l.Rate.Per)
	for i := range at {
		sum := new(big.Int)
		for j := i; j < len(at); j++ {
			sum.Add(sum, big.NewInt(spent[j]))
			allowed := new(big.Int).Mul(big.NewInt(l.Rate.Tokens), big.NewInt(at[j]-at[i]))
			allowed.Add(allowed, new(big.Int).Mul(big.NewInt(l.Burst), per))
			if new(big.Int).Mul(sum, per).Cmp(allowed) > 0 {
				t.Fatalf("seed %d: %+v: %v tokens within %d µs", seed, l, sum, at[j]-at[i])
			}
		}
	}
}

// Refunding what was taken, in any order, brings back the very state, even when
// time has passed in between: as long as the bucket would not have run over.
func TestRefundsRestoreTheExactState(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		l := anyBucket(rng)
		b := limits.Bucket{Level: rng.Int64N(l.Burst*l.Rate.Per + 1), Last: 1000}
		untouched := b
		now := limits.Time(1000)
		var taken []int64
		for range 20 {
			now += step(rng, l) / 64
			if cost := rng.Int64N(l.Burst + 1); take(&b, l, now, cost) {
				taken = append(taken, cost)
			}
		}
		rng.Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
		for _, cost := range taken {
			b.Refund(l, cost)
		}
		if untouched.Refill(l, now); b != untouched {
			t.Fatalf("seed %d: %+v: after refunds %+v, want %+v", seed, l, b, untouched)
		}
	}
}

// What Ready says is the first moment at which Take succeeds.
func TestReadyIsTheFirstMoment(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		l := anyBucket(rng)
		b := limits.Bucket{Level: rng.Int64N(l.Burst*l.Rate.Per + 1), Last: 1000}
		cost := rng.Int64N(l.Burst + 1)
		ready := b.Ready(l, cost)
		if early := b; ready > b.Last && take(&early, l, ready-1, cost) {
			t.Fatalf("seed %d: %+v %+v: Ready(%d) = %d, but a microsecond before it was there", seed, l, b, cost, ready)
		}
		if !take(&b, l, ready, cost) {
			t.Fatalf("seed %d: %+v %+v: Ready(%d) = %d, but it was not there", seed, l, b, cost, ready)
		}
	}
}

func BenchmarkBucket(b *testing.B) {
	l := bucketOf(1, 1000, 100)
	bucket := limits.Full(l, 0)
	now := limits.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 500
		take(&bucket, l, now, 1)
	}
}
