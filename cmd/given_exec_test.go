//go:build unix

package cmd_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

// Commands leave children behind, write what is no text or without end, and are
// ended by signals: the records tell it all.
func TestAwkwardCommands(t *testing.T) {
	t.Parallel()
	p := perform(t, "", strings.ReplaceAll(`
limits: {hosts: {h: {concurrency: 20}}}
defaults: {host: h}
jobs:
- {id: child, exec: {shell: "sleep 10 & echo done"}}
- {id: child-and-timeout, timeout: 2s, exec: {shell: "sleep 10 & echo done"}}
- {id: timeout, timeout: 500ms, exec: {shell: "sleep 60"}}
- {id: lines, exec: {shell: "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"}}
- {id: bytes, exec: {argv: [printf, '\377\000\376A']}}
- {id: endless, exec: {shell: "head -c 300000000 /dev/zero"}}
- {id: both-streams, exec: {shell: "head -c 300000 /dev/zero >&2; echo end"}}
- {id: broken-pipe, timeout: 5s, exec: {shell: "yes | head -n 1"}}
- {id: signal, exec: {shell: "kill -PIPE $$; echo still here"}}
- {id: exit-141, exec: {shell: "exit 141"}}
- {id: victim, exec: {shell: "echo $$ >PID.new; mv PID.new PID; exec sleep 60"}}
- {id: killer, exec: {shell: "until [ -e PID ]; do sleep 0.02; done; kill $(cat PID)"}}
- {id: input, exec: {argv: [cat]}}
`, "PID", filepath.Join(t.TempDir(), "pid")))
	p.exits(t, 1)

	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&text, "line", i)
	}
	zeros := strings.Repeat("\x00", 64<<10)
	want := map[string]end{
		"child":             {results.Succeeded, 1, 0, "done\n", ""},
		"child-and-timeout": {results.Succeeded, 1, 0, "done\n", ""},
		"timeout":           {results.Failed, 1, -1, "", "timeout"},
		"lines":             {results.Succeeded, 1, 0, text.String(), ""},
		"bytes":             {results.Succeeded, 1, 0, "/wD+QQ==", ""},
		"endless":           {results.Succeeded, 1, 0, zeros, ""},
		"both-streams":      {results.Succeeded, 1, 0, "end\n", ""},
		"broken-pipe":       {results.Succeeded, 1, 0, "y\n", ""},
		"signal":            {results.Failed, 1, -1, "", "signal"},
		"exit-141":          {results.Failed, 1, 141, "", "exit"},
		"victim":            {results.Failed, 1, -1, "", "signal"},
		"killer":            {results.Succeeded, 1, 0, "", ""},
		"input":             {results.Succeeded, 1, 0, "", ""},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	for id, signal := range map[string]string{"signal": "SIGPIPE", "victim": "SIGTERM", "timeout": "SIGTERM", "exit-141": ""} {
		if got := p.records[id].Exec.Signal; got != signal {
			t.Errorf("%s: recorded signal %q, want %q", id, got, signal)
		}
	}
	for _, id := range []string{"child", "child-and-timeout", "timeout"} {
		a := p.records[id].Attempts[0]
		if took := a.EndedAt.Sub(a.StartedAt.Time); took > 500*time.Millisecond+late {
			t.Errorf("%s held its permit for %v", id, took)
		}
	}
	if x := p.records["bytes"].Exec; x.StdoutEncoding != "base64" || x.StdoutBytes != 4 {
		t.Errorf("bytes: %+v, want 4 bytes in base64", x)
	}
	if x := p.records["endless"].Exec; !x.StdoutTruncated || x.StdoutBytes != 300e6 {
		t.Errorf("endless: %d bytes, truncated %v, want 300 MB cut", x.StdoutBytes, x.StdoutTruncated)
	}
	if x := p.records["both-streams"].Exec; x.Stderr != zeros || !x.StderrTruncated || x.StderrBytes != 300e3 || x.StdoutTruncated {
		t.Errorf("both-streams: %d bytes of standard error, truncated %v, want a cap of its own", x.StderrBytes, x.StderrTruncated)
	}
}

// A stopped run says of each job that it started how that ended, never that a
// call which was ended early went well; the others have no record.
func TestStoppedRunTellsTheTruth(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var came atomic.Int32
	s := receive(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if came.Add(1) == 2 {
			stop()
		}
		<-r.Context().Done()
	})
	began := time.Now()
	p := performUntil(t, ctx, s.URL, `
limits: {hosts: {h: {concurrency: 3}}}
defaults: {host: h, timeout: 1m}
jobs:
- {id: command, exec: {argv: [sleep, "30"]}}
- {id: get, http: {url: "${var:base}/get"}}
- {id: post, http: {method: POST, url: "${var:base}/post", body: x}}
`+fill(17, func(int) string { return `- {exec: {argv: [sleep, "30"]}}` }), "--grace", "1s")
	p.exits(t, 143)
	if took := time.Since(began); took > time.Second+late {
		t.Errorf("the run went on for %v, its grace is 1 s", took)
	}
	got := make(map[string]results.Status)
	for id, r := range p.records {
		got[id] = r.Status
	}
	want := map[string]results.Status{"command": results.Interrupted, "get": results.Interrupted, "post": results.Unknown}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
