package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/schedule"
)

// told returns what a voice of a format said while f used it, the times left out.
func told(t *testing.T, format string, f func(*voice)) []string {
	t.Helper()
	var out bytes.Buffer
	f(newVoice(&out, format))
	var lines []string
	for line := range strings.Lines(out.String()) {
		if format == "json" {
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil || object["time"] == nil {
				t.Errorf("%q: error %v, want an object with a time", line, err)
			}
			delete(object, "time")
			text, _ := json.Marshal(object)
			line = string(text)
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func TestVoice(t *testing.T) {
	say := func(v *voice) {
		v.say(slog.LevelError, "bad \x1b[2J", "id", "a")
		v.note(slog.LevelWarn, "doubtful")
		v.tell(slog.LevelInfo, "short", "long\n  and longer\n")
		v.fail(fmt.Errorf("one\ntwo"))
		v.hint("go on")
		v.quiet = true
		v.note(slog.LevelWarn, "nobody wants to know")
	}
	for format, want := range map[string][]string{
		"text": {
			`agentlimit: error: bad \x1b[2J`, "agentlimit: warning: doubtful", "long", "  and longer",
			"agentlimit: error: one", "agentlimit: error: two", "agentlimit: hint: go on",
		},
		"json": {
			`{"id":"a","level":"ERROR","msg":"bad \\x1b[2J"}`, `{"level":"WARN","msg":"doubtful"}`, `{"level":"INFO","msg":"short"}`,
			`{"level":"ERROR","msg":"one"}`, `{"level":"ERROR","msg":"two"}`, `{"level":"INFO","msg":"hint: go on"}`,
		},
	} {
		if diff := cmp.Diff(want, told(t, format, say)); diff != "" {
			t.Errorf("as %s (-want +got):\n%s", format, diff)
		}
	}
}

// A pause is told once, though each call that was under way is refused, and once
// more if it gets much longer.
func TestPausesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		key, other := limits.PairKey("h", "a\x07"), limits.Key{Kind: limits.Host, Name: "h"}
		at := func(d time.Duration) time.Time { return now.Add(d) }
		pause := func(key limits.Key, d time.Duration, why string) runner.Pause {
			return runner.Pause{Key: key, Until: at(d), Left: d, Why: why}
		}
		all := []runner.Pause{
			pause(key, 3*time.Second, "429, retry-after: 3"),
			pause(key, 3200*time.Millisecond, "429, retry-after: 3"),
			pause(other, 24*time.Hour, "503, retry-after: 86400"),
			pause(key, time.Minute, "429, retry-after: 60"),
			{Key: key, Over: true},
			pause(key, time.Second, "429, retry-after: 1"),
		}
		clock := func(d time.Duration, format string) string { return at(d).Local().Format(format) }
		want := []string{
			`agentlimit: paused pair/h/a\a until ` + clock(3*time.Second, time.TimeOnly) + " (3s): 429, retry-after: 3",
			"agentlimit: paused host/h until " + clock(24*time.Hour, time.DateTime) + " (24h): 503, retry-after: 86400",
			`agentlimit: paused pair/h/a\a until ` + clock(time.Minute, time.TimeOnly) + " (1m): 429, retry-after: 60",
			`agentlimit: resumed pair/h/a\a`,
			`agentlimit: paused pair/h/a\a until ` + clock(time.Second, time.TimeOnly) + " (1s): 429, retry-after: 1",
		}
		got := told(t, "text", func(v *voice) {
			tell, done := v.pauses()
			for _, p := range all {
				tell(p)
				time.Sleep(time.Millisecond) // told late, it is as long as was asked
			}
			done()
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
	})
}

// The run must not wait for a terminal that is held.
func TestPausesWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blocked{make(chan struct{})}
		tell, done := newVoice(out, "text").pauses()
		for range 2 * waitingPauses {
			tell(runner.Pause{Over: true})
		}
		close(out.free)
		done()
	})
}

// blocked is a stream that takes nothing until it is free.
type blocked struct{ free chan struct{} }

func (b *blocked) Write(p []byte) (int, error) { <-b.free; return len(p), nil }

func TestPlainLineNamesTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := limits.Key{Kind: limits.Account, Name: "team-a"}
		for _, test := range []struct {
			wait schedule.Wait
			want string
		}{
			{schedule.Wait{Cause: schedule.Account, Key: account}, ", longest wait 12s: account/team-a"},
			{schedule.Wait{Cause: schedule.Rate, Key: account}, ", longest wait 12s: account/team-a (rate)"},
			{schedule.Wait{Cause: schedule.Pause, Key: limits.PairKey("h", "a")}, ", longest wait 12s: pair/h/a (pause)"},
			{schedule.Wait{Cause: schedule.Global}, ", longest wait 12s: global"},
			{schedule.Wait{Cause: schedule.Backoff}, ", longest wait 12s: backoff"},
		} {
			test.wait.Since = limits.TimeOf(time.Now().Add(-12 * time.Second))
			got := told(t, "text", func(v *voice) { v.drawLine(runner.Summary{Longest: test.wait}, 5, time.Minute) })
			if want := "agentlimit: 0/5, 1m, 0 under way, 0 waiting" + test.want; got[0] != want {
				t.Errorf("with %+v: %q, want %q", test.wait, got[0], want)
			}
		}
		short := schedule.Wait{Since: limits.TimeOf(time.Now().Add(-time.Second / 2))}
		got := told(t, "text", func(v *voice) { v.drawLine(runner.Summary{Longest: short}, 5, time.Minute) })
		if strings.Contains(got[0], "wait ") {
			t.Errorf("with a wait of half a second: %q, want nothing of it", got[0])
		}
	})
}
