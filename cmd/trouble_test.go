package cmd

import (
	"strings"
	"testing"

	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

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
		got = append(got, tellTrouble(trouble))
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
