package cmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

func TestSummarize(t *testing.T) {
	host := keyStats(limits.Host, "api.example.com", 0, 4)
	host.Started, host.Peak, host.Limit.Rate = 30, 4, limits.Rate{Tokens: 1, Per: 100_000}
	host.Held = 38 * time.Second
	host.Waited = results.Waits{Rate: 3_000, Host: 81_000, Pause: 1_000}
	account := keyStats(limits.Account, "team-a-with-a-name-that-is-too-long-for-a-table", 0, 0)
	account.Started, account.Peak = 30, 3
	sum := runner.Summary{
		Ended: map[results.Status]int64{results.Succeeded: 25, results.Failed: 3, results.Deferred: 2},
		Keys:  []runner.KeyStats{host, account},
	}
	troubles := report.Troubles{
		{Kind: "failed", Reason: "account/team-a: status 500", First: "a", Jobs: 1},
		{Kind: "failed", Reason: "exit code 1\x1b[2J", First: "b", Jobs: 2},
	}
	got := summarize(sum, 37, troubles, 10*time.Second)
	want := `agentlimit: 25 succeeded, 3 failed, 2 deferred, 7 not started in 10s
  failed: a: account/team-a: status 500
  failed: 2 jobs, such as b: exit code 1\x1b[2J
  key                                                      starts  peak  rate  busy  jobs waited for
  host/api.example.com                                     30      4/4   10/s  95%   host 1m21s, rate 3s
  account/team-a-with-a-name-that-is-too-long-for-a-table  30      3     -     -
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summarize (-want +got):\n%s", diff)
	}
}

func TestSummaryIsShort(t *testing.T) {
	var sum runner.Summary
	var troubles report.Troubles
	for i := range int64(13) {
		k := keyStats(limits.Host, fmt.Sprint("h", i), 0, 1)
		k.Started = i
		sum.Keys = append(sum.Keys, k)
		troubles = append(troubles, &report.Trouble{Kind: "failed", Reason: strings.Repeat("long ", 100), First: "a", Jobs: 1})
	}
	got := summarize(sum, -1, troubles, time.Second)
	for _, want := range []string{"\n  host/h12  12 ", "\n  and 3 more hosts\n", "\n  and 8 more kinds of trouble: see the results\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("summarize: want %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "host/h2 ") {
		t.Errorf("summarize: the least used hosts are shown:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if line = strings.TrimSuffix(line, "\n"); cut(line, 2*lineWidth) != line {
			t.Errorf("summarize: a line that is too wide: %s", line)
		}
	}
}

// counter is a sink that counts.
type counter struct{ n int }

func (c *counter) Append(records ...*results.Record) error {
	c.n += len(records)
	return nil
}

func TestWatchGathersTroubles(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	deferred := func(id string, retry time.Time) *results.Record {
		return &results.Record{ID: id, Status: results.Deferred, Deferred: &results.Deferral{Reason: "host h: no token before the deadline", RetryAt: results.Time{Time: retry}}}
	}
	failed := func(id, account string) *results.Record {
		return &results.Record{ID: id, Account: account, Status: results.Failed, Error: &results.Error{Kind: "status", Message: "status 500"}}
	}
	var lines []string
	sink := &counter{}
	w := &watch{Sink: sink, each: func(r *results.Record) { lines = append(lines, recordLine(r.ID, r)) }}
	exit := results.Attempt{StartedAt: results.Time{Time: at}, EndedAt: results.Time{Time: at.Add(1500 * time.Millisecond)}}
	err := w.Append(
		&results.Record{ID: "fine", Status: results.Succeeded, Attempts: []results.Attempt{exit, exit}},
		failed("a", "p"), failed("b", "p"), failed("c", "q"),
		deferred("d", at.Add(time.Hour)), deferred("e", at), deferred("f", time.Time{}),
	)
	if err != nil || sink.n != 7 {
		t.Errorf("Append passed %d records on, error %v; want 7", sink.n, err)
	}
	var got []string
	for _, trouble := range w.troubles {
		got = append(got, tellTrouble(trouble))
	}
	want := []string{
		"failed: 2 jobs, such as a: account/p: status 500",
		"failed: c: account/q: status 500",
		"deferred: 3 jobs, such as d: host h: no token before the deadline; again from " + at.Local().Format(time.RFC3339),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	if want := "fine: succeeded in 1.5s, 2 attempts"; lines[0] != want {
		t.Errorf("the line of the first record is %q, want %q", lines[0], want)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0s",
		1234 * time.Nanosecond:  "1µs",
		42 * time.Millisecond:   "42ms",
		1234 * time.Millisecond: "1.2s",
		10 * time.Second:        "10s",
		2 * time.Minute:         "2m",
		90 * time.Minute:        "1h30m",
		24 * time.Hour:          "24h",
		3601 * time.Second:      "1h0m1s",
	} {
		if got := brief(d); got != want {
			t.Errorf("brief(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"team-a":               "team-a",
		"Zürich 東京":            "Zürich 東京",
		"\x1b[2Jclear\r\n\x07": `\x1b[2Jclear\r\n\a`,
		"bad \xff byte":        `bad \ufffd byte`,
		"\u202eright to left":  `\u202eright to left`,
	} {
		if got := printable(s); got != want {
			t.Errorf("printable(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		s     string
		width int
		want  string
	}{
		{"fits", 4, "fits"},
		{"too long", 5, "too …"},
		{"東京都", 6, "東京都"},
		{"東京都", 5, "東京…"},
		{"東京都", 4, "東…"},
		{"", 0, ""},
	} {
		if got := cut(test.s, test.width); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.s, test.width, got, test.want)
		}
	}
}
