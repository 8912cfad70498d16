package call

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"agentlimit/jobspec"
)

func TestCommandsSayWhenToComeBack(t *testing.T) {
	c := New(Config{})
	defer c.Close()
	for _, row := range []struct {
		name, shell string
		want        *Hint
	}{
		{"a number of seconds", `echo "retry-after: 30" > "$AGENTLIMIT_JOB_FEEDBACK"; exit 75`, &Hint{"feedback", "30", 30 * time.Second}},
		{"with a code of its own", `echo "retry-after: 1.5" > "$AGENTLIMIT_JOB_FEEDBACK"; exit 1`, &Hint{"feedback", "1.5", 1500 * time.Millisecond}},
		{"nothing", `exit 75`, nil},
		{"junk", `echo soon > "$AGENTLIMIT_JOB_FEEDBACK"; exit 75`, nil},
		{"more than anybody reads", `head -c 10000000 /dev/zero > "$AGENTLIMIT_JOB_FEEDBACK"; exit 75`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := c.Call(t.Context(), Attempt{Job: &jobspec.Job{ID: "j", Exec: &jobspec.Exec{Shell: row.shell, InheritEnv: true}}})
			if (out.Hint == nil) != (row.want == nil) || out.Hint != nil && *out.Hint != *row.want {
				t.Errorf("Call: hint %+v, want %+v", out.Hint, row.want)
			}
		})
	}
	dir := c.feedback.Path
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for feedback: %v, %v, want nothing", left, err)
	}
	c.Close()
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder for feedback is still there after Close")
	}
}

func TestAnswersSayWhenToComeBack(t *testing.T) {
	c := New(Config{})
	defer c.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7 sesame-street")
		w.Header().Add("Retry-After", "7")
		if r.URL.Path == "/long" { // the secret lies across the end of what is kept
			w.Header().Del("Retry-After")
			w.Header().Set("RateLimit", `"`+strings.Repeat("x", 190)+`sesame-street";r=0;t=7`+strings.Repeat(" ", 300)+`;x=1`)
		}
		w.Header().Set("Location", "/next?token=sesame-street")
		status := http.StatusTooManyRequests
		if r.URL.Path == "/moved" {
			status = http.StatusFound
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	get := func(path string) Outcome {
		return c.Call(t.Context(), Attempt{Job: &jobspec.Job{ID: "j", Secrets: []string{"sesame-street"}, HTTP: &jobspec.HTTP{Method: "GET", URL: server.URL + path}}})
	}
	if out := get("/"); out.Hint == nil || out.Hint.Wait != 7*time.Second || strings.Contains(out.Hint.Raw, "sesame") || out.Location != "" {
		t.Errorf("429: %+v at %q, want a hint of 7 s without the secret, and no location", out.Hint, out.Location)
	}
	if out := get("/long"); len(out.Hint.Raw) != 200 || strings.Contains(out.Hint.Raw, "sesame") {
		t.Errorf("a long 429: %q, want 200 bytes without a piece of the secret", out.Hint.Raw)
	}
	if out := get("/moved"); out.Hint != nil || out.Location != "/next?token=sesame-street" || len(out.HTTP.Headers["Location"]) > 0 {
		t.Errorf("302: %+v to %q, recorded as %q, want the location as it is, and not in the record", out.Hint, out.Location, out.HTTP.Headers["Location"])
	}
}
