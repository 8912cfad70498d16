package cmd

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// keyStats returns what a key with a cap is used for.
func keyStats(kind limits.Kind, name string, underWay, most int64) runner.KeyStats {
	return runner.KeyStats{Key: limits.Key{Kind: kind, Name: name}, UnderWay: underWay, Limit: limits.Limit{Concurrency: most}}
}

func TestBarLine(t *testing.T) {
	sum := runner.Summary{
		UnderWay: 6,
		Waiting:  49,
		Ended:    map[results.Status]int64{results.Succeeded: 43, results.Failed: 2},
		Keys: []runner.KeyStats{
			keyStats(limits.Host, "api.example.com", 4, 4),
			keyStats(limits.Account, "team-a", 1, 2),
		},
	}
	for _, test := range []struct {
		what  string
		total int64
		width int
		want  string
	}{
		{"all of it", 100, 120, "  45% |█████████████                 | 45/100, 4/4 on host/api.example.com, 2 failed, 12s, 6 under way, 49 waiting"},
		{"a usual terminal", 100, 79, "  45% |████████           | 45/100, 4/4 on host/api.example.com, 2 failed, 12s…"},
		{"a narrow one: the key is cut", 100, 39, "  45% |██    | 45/100, 4/4 on host/api…"},
		{"a tiny one", 100, 12, "  45% |██  …"},
		{"without a total there is no bar", -1, 79, "45 ended, 4/4 on host/api.example.com, 2 failed, 12s, 6 under way, 49 waiting"},
		{"nothing to do", 0, 30, "45/0, 4/4 on host/api.example…"},
		{"done", 45, 60, " 100% |██████████| 45/45, 4/4 on host/api.example.com, 2 fa…"},
	} {
		t.Run(test.what, func(t *testing.T) {
			got := barLine(sum, test.total, 12*time.Second, test.width)
			if got != test.want {
				t.Errorf("barLine(…, %d, 12s, %d):\n%q, want\n%q", test.total, test.width, got, test.want)
			}
			for width := range 130 {
				if line := barLine(sum, test.total, 12*time.Second, width); cut(line, max(width, 1)) != line {
					t.Errorf("barLine(…, %d, 12s, %d) = %q: too wide", test.total, width, line)
				}
			}
		})
	}
}

func TestBusiest(t *testing.T) {
	half, full, free := keyStats(limits.Host, "half", 2, 4), keyStats(limits.Account, "full", 1, 1), keyStats(limits.Pool, "free", 9, 0)
	many := keyStats(limits.Host, "many", 2, 4)
	many.Started = 100
	for _, test := range []struct {
		what string
		keys []runner.KeyStats
		want string
	}{
		{"the largest part of its permits is taken", []runner.KeyStats{many, free, full}, "full"},
		{"of two with equal parts, that with most starts", []runner.KeyStats{half, many}, "many"},
		{"a key without a cap is better than none", []runner.KeyStats{free}, "free"},
	} {
		if got := busiest(test.keys).Key.Name; got != test.want {
			t.Errorf("%s: busiest = %q, want %q", test.what, got, test.want)
		}
	}
}

func TestScreenKeepsStatusBelowLines(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, width: func() int { return 80 }}
	s.set("one")
	s.set("one") // nothing new: nothing is written
	s.Write([]byte("a line\n"))
	s.set("")
	if got, want := out.String(), "\rone\x1b[K\r"+"\r\x1b[K\r"+"a line\n"+"\rone\x1b[K\r"+"\r\x1b[K\r"; got != want {
		t.Errorf("the screen got %q, want %q", got, want)
	}
}

func TestPlainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		v := &voice{screen: &screen{out: &out, width: func() int { return 80 }}}
		hide := v.progress("plain", runner.NewStats(func(limits.Key) limits.Limit { return limits.Limit{} }), 100)
		time.Sleep(25 * time.Second)
		hide()
		if got, want := out.String(), "agentlimit: 0/100, 10s, 0 under way, 0 waiting\nagentlimit: 0/100, 20s, 0 under way, 0 waiting\n"; got != want {
			t.Errorf("after 25s: %q, want %q", got, want)
		}
	})
}

func TestBarProgressIsDrawnTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		v := &voice{screen: &screen{out: &out}}
		var draws int
		v.width = func() int { draws++; return 80 }
		hide := v.progress("bar", runner.NewStats(func(limits.Key) limits.Limit { return limits.Limit{} }), 100)
		time.Sleep(1050 * time.Millisecond)
		hide()
		if draws != 10 {
			t.Errorf("drawn %d times in 1.05s, want 10", draws)
		}
		if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K\r") {
			t.Errorf("at the end the bar is still there: %q", got)
		}
	})
}
