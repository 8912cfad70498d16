//go:build unix

package redis

import (
	"context"
	"testing"
	"time"

	"agentlimit/limits"
)

func TestClock(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(us int) time.Time { return start.Add(time.Duration(us) * time.Microsecond) }
	c := clock{start: start}
	for _, step := range []struct {
		what           string
		sent, received int
		now            limits.Time
		want           limits.Time // at 1000
	}{
		{"a first answer, read at any time in 100 µs", 0, 100, 5060, 5959},
		{"one that was read quickly", 200, 210, 5205, 5994},
		{"a slow one says nothing new", 300, 900, 5400, 5994},
		{"one after Redis's clock was set forward", 900, 910, 7000, 7089},
		{"and back", 920, 930, 100, 169},
	} {
		c.set(at(step.sent), at(step.received), step.now)
		if got := c.at(at(1000)); got != step.want {
			t.Errorf("%s: at(1000) = %d, want %d", step.what, got, step.want)
		}
	}
}

// TestServersClockSteps has the server's clock stepped by an hour: nothing is minted
// beyond a full bucket, no lease ends that is kept, and those of the dead do.
func TestServersClockSteps(t *testing.T) {
	s := newServer(t)
	const hour, start = limits.Time(3600e6), limits.Time(1_700_000_000_000_000)
	limit := limits.Limit{Concurrency: 9, Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: 2}
	for _, tt := range []struct {
		name   string
		step   limits.Time
		tokens int64 // after that
	}{{"forward", hour, 2}, {"back", -hour, 0}} {
		space := s.fresh()
		var m [2]*Redis
		for i := range m {
			r, err := newRedis(s.url(space), Options{}, timing{ttl: usual.ttl, at: start})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.client.Close() }()
			m[i] = r
			ask(t, r, claimOn(1, limit, "host/h"))
			ask(t, r, claimOn(2, one, "host/"+r.name))
		}
		m[1].timing.at = start + tt.step
		var left int64
		for id := 3; ask(t, m[1], claimOn(id, limit, "host/h"))[0] == limits.Granted; id++ {
			left++
		}
		expect(t, "tokens after a step "+tt.name, tt.tokens, left)
		expect(t, "the permit of another, whose lease has not ended", permit, ask(t, m[1], claimOn(20, one, "host/"+m[0].name)))
		for range 3 { // of which m[0] says nothing
			m[1].timing.at += 4e6
			say(t, m[1], limits.Batch{})
		}
		expect(t, "the permit of the other when its lease has ended", granted, ask(t, m[1], claimOn(20, one, "host/"+m[0].name)))
		if _, err := m[1].speak(context.Background(), &request{Op: "leave"}); err != nil {
			t.Fatal(err)
		}
	}
}
