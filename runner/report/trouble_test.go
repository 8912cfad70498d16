package report

import (
	"strings"
	"testing"

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
		{"at most 300 characters", strings.Repeat("é", 301), strings.Repeat("é", 299) + "…"},
		{"nothing", "", ""},
	} {
		if got := saidBy(&results.HTTP{Body: test.body}); got != test.want {
			t.Errorf("%s: saidBy(%q) = %q, want %q", test.what, test.body, got, test.want)
		}
	}
	if got := saidBy(&results.HTTP{Body: "AAAA", Encoding: "base64"}); got != "" {
		t.Errorf("saidBy of bytes = %q, want nothing", got)
	}
}
