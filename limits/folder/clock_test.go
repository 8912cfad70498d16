//go:build linux || darwin

package folder

import (
	"context"
	"sync/atomic"
	"testing"

	"agentlimit/limits"
)

// machine has a clock that a test moves.
type machine struct {
	boot    string
	elapsed limits.Time
	wall    limits.Time
}

func (m *machine) clock() clock {
	return clock{
		boot:    m.boot,
		elapsed: func() limits.Time { return m.elapsed },
		wall:    func() limits.Time { return m.wall },
		start:   new(atomic.Int64),
	}
}

// join opens the folder on the machine; what is warned of is kept.
func (m *machine) join(t *testing.T, path string, warned *[]string) *Folder {
	t.Helper()
	f, err := open(context.Background(), path, Options{Warn: func(s string) { *warned = append(*warned, s) }}, m.clock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

const second, hour limits.Time = 1e6, 3600e6

// TestClockSteps spends a bucket and steps clocks: after it, cost tokens are there
// and no more.
func TestClockSteps(t *testing.T) {
	start := limits.Time(1.8e15)
	tests := []struct {
		name    string
		step    func(m *machine)
		reopen  bool
		tokens  int64
		elapsed limits.Time // of the shared clock
	}{
		{"time that passes counts", func(m *machine) { m.elapsed += 3 * second }, false, 3, 3 * second},
		{"the wall clock put forward mints nothing", func(m *machine) { m.wall += hour }, false, 0, 0},
		{"nor for one who comes then", func(m *machine) { m.wall += hour }, true, 0, 0},
		{"the wall clock put back loses nothing", func(m *machine) { m.wall -= hour; m.elapsed += 2 * second }, true, 2, 2 * second},
		{"after a restart the wall clock counts", func(m *machine) {
			*m = machine{"second", 20 * second, start + 4*second}
		}, true, 4, 4 * second},
		{"a restart long after fills the bucket and no more", func(m *machine) {
			*m = machine{"second", second, start + hour}
		}, true, 10, hour},
		{"after a restart with the wall clock put back time goes on from where it was", func(m *machine) {
			*m = machine{"second", second, start - hour}
		}, true, 0, 0},
	}
	for _, tt := range tests {
		path, m, warned := t.TempDir(), &machine{"first", 100 * second, start}, []string(nil)
		f := m.join(t, path, &warned)
		if got := ask(t, f, tokenClaim(1, 10)); got != limits.Granted {
			t.Fatalf("%s: cause %d for a full bucket", tt.name, got)
		}
		if err := f.Sync(context.Background(), &limits.Batch{Releases: []limits.ClaimID{1}}, new(limits.Reply)); err != nil {
			t.Fatal(err)
		}
		before := f.Now()
		if tt.reopen {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		tt.step(m)
		if tt.reopen {
			f = m.join(t, path, &warned)
		}
		if tt.tokens > 0 && ask(t, f, tokenClaim(2, tt.tokens)) != limits.Granted {
			t.Errorf("%s: %d tokens are not there", tt.name, tt.tokens)
		}
		if tt.tokens < 10 && ask(t, f, tokenClaim(3, 1)) != limits.Tokens {
			t.Errorf("%s: more than %d tokens are there", tt.name, tt.tokens)
		}
		if elapsed := f.Now() - before; elapsed != tt.elapsed || warned != nil {
			t.Errorf("%s: the clock went on by %d µs, want %d; warned of %q", tt.name, elapsed, tt.elapsed, warned)
		}
	}
}
