package cmd

import (
	"strings"
	"testing"

	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

func TestSaidBy(t *testing.T) {
	for _, test := range []struct{ what, body, want string }{
		{"a message within an error", `{"error":{"code":"plan_used_up","message":"no units left"},"message":"see error"}`, "no units left"},
		{"a message", `{"message":"no units left","error":"quota"}`, "no units left"},
		{"an error that is a text", `{"error":"no units left"}`, "no units left"},
		{"a detail, as RFC 9457 has it", `{"title":"Too many","detail":"no units left"}`, "no units left"},
		{"JSON without a reason", `{"code":17,"message":{"de":"nichts"}}`, ""},
		{"JSON that is no object is text", `["no units left"]`, `["no units left"]`},
		{"text", "  no units left\nask sales\n", "no units left"},
		{"JSON that was cut off is text", `{"error":{"message":"no un`, `{"error":{"message":"no un`},
		{"the first line of a message", `{"message":"\n no units left \nask sales"}`, "no units left"},
		{"nothing that a terminal obeys", "no \x1b[2Junits", `no \x1b[2Junits`},
		{"at most 200 columns", strings.Repeat("é", 250), strings.Repeat("é", 199) + "…"},
		{"nothing", "", ""},
	} {
		if got := saidBy(&results.HTTP{Said: test.body}); got != test.want {
			t.Errorf("%s: saidBy(%q) = %q, want %q", test.what, test.body, got, test.want)
		}
	}
}

func TestWatchGathersRefusals(t *testing.T) {
	refused := func(id, account string, status int, body string, hint *results.Hint) *results.Record {
		return &results.Record{
			ID: id, Host: "h", Account: account, Status: results.Failed,
			HTTP: &results.HTTP{Status: status, Said: body}, Error: &results.Error{Kind: "status", Message: "status of an error"},
			Attempts: []results.Attempt{{Hint: hint}},
		}
	}
	w := &watch{Sink: &counter{}, hide: call.HideURLs(nil)}
	err := w.Append(
		refused("a", "p", 429, `{"message":"used up, request 1"}`, nil),
		refused("b", "p", 429, `{"message":"used up, request 2"}`, nil),
		refused("c", "q", 429, ``, nil),
		refused("d", "", 403, `not you`, nil),
		refused("e", "p", 429, `slow down`, &results.Hint{}),
		refused("f", "p", 500, `oops`, nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, trouble := range w.troubles {
		got = append(got, trouble.String())
	}
	want := []string{
		"quota: account/p: 2 jobs: used up, request 1",
		"quota: account/q: 1 job: status of an error",
		"refused: host/h: 1 job: not you",
		"failed: 2 jobs, such as e: account/p: status of an error",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("troubles\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
