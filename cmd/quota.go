package cmd

import (
	"encoding/json"
	"net/http"
	"strings"

	"agentlimit/runner/results"
)

// maxReason is how much of a server's reason is told, in bytes.
const maxReason = 200

// refusal says what to call a failure that waiting does not help: the server
// refuses and says nothing of when to come back. Empty: it is none.
func refusal(r *results.Record) string {
	n := len(r.Attempts)
	if r.Status != results.Failed || r.HTTP == nil || n == 0 || r.Attempts[n-1].Hint != nil {
		return ""
	}
	switch r.HTTP.Status {
	case http.StatusTooManyRequests:
		return "quota"
	case http.StatusForbidden:
		return "refused"
	}
	return ""
}

// reasons are the places of a server's reason in a JSON body, the best first.
var reasons = [][]string{{"error", "message"}, {"message"}, {"error"}, {"detail"}}

// saidBy returns the first line of what a body gives as the reason, whether it is
// JSON or text.
func saidBy(h *results.HTTP) string {
	if h.Encoding != "" { // no text
		return ""
	}
	text := h.Body
	var body any
	if json.Unmarshal([]byte(text), &body) == nil {
		text = ""
		for _, path := range reasons {
			if text = textAt(body, path); text != "" {
				break
			}
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return head(printable(strings.TrimSpace(line)), maxReason)
}

// textAt returns the text at a path of names in decoded JSON, empty if there is none.
func textAt(value any, path []string) string {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}

// head returns s, or as many of its first bytes as fit with "…" behind them.
func head(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size-len("…")], "") + "…"
}
