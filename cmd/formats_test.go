package cmd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/cmd"
)

// agentlimit runs a command line, which must succeed, and returns what it prints.
func agentlimit(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cmd.Run(t.Context(), args, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("agentlimit %s: exit code %d\n%s", strings.Join(args, " "), code, &stderr)
	}
	return stdout.String()
}

func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormatsByteForByte has files of other formats, written by hand after their
// documentation, send to a server what stands in them.
func TestFormatsByteForByte(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("API_TOKEN", "tok-12345678")
	k := &keeper{}
	server := httptest.NewServer(k)
	defer server.Close()
	big := `{"input":"` + strings.Repeat("é", 150<<10) + `"}`
	odd := `{ "model":"m", "a":1.50e1,"t":"\u00e9 ${env:API_TOKEN} $${x}\n" }`
	writeFiles(t, map[string]string{
		"batch.jsonl": "\r\n" + `{"custom_id": "日本-1", "method": "POST", "url": "/v1/chat/completions", "body": ` + odd + "}\r\n\r\n" +
			`{"custom_id":"2","method":"POST","url":"/v1/embeddings?x=%20","body":` + big + `}`,
		"body.bin": "\x00\xff\r\n",
		"targets.txt": "# a comment\r\nPOST " + server.URL + "/things?a=b\r\nX-A: 1\r\nX-A: 2\r\n@body.bin\r\n\r\n" +
			"GET " + server.URL + "/a b${env:API_TOKEN}\nHost: example.com\n",
		"targets.json": `{"method":"PUT","url":"` + server.URL + `/p","header":{"Content-Type":["application/octet-stream"]},"body":"` + base64.StdEncoding.EncodeToString([]byte("\x00\xff\n")) + `"}`,
	})
	header := func(lines ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(lines); i += 2 {
			h.Add(lines[i], lines[i+1])
		}
		return h
	}
	host := strings.TrimPrefix(server.URL, "http://")
	for _, test := range []struct {
		format string
		args   []string
		want   []sent
	}{
		{"openai-batch", []string{"batch.jsonl", "--base-url", server.URL, "--header", "Authorization: Bearer ${env:API_TOKEN}"}, []sent{
			{"POST", "/v1/chat/completions", host, header("Authorization", "Bearer tok-12345678", "Content-Type", "application/json"), odd},
			{"POST", "/v1/embeddings?x=%20", host, header("Authorization", "Bearer tok-12345678", "Content-Type", "application/json"), big},
		}},
		{"vegeta", []string{"targets.txt"}, []sent{
			{"POST", "/things?a=b", host, header("X-A", "1", "X-A", "2"), "\x00\xff\r\n"},
			{"GET", "/a%20b$%7Benv:API_TOKEN%7D", "example.com", header(), ""},
		}},
		{"vegeta", []string{"targets.json"}, []sent{
			{"PUT", "/p", host, header("Content-Type", "application/octet-stream"), "\x00\xff\n"},
		}},
	} {
		agentlimit(t, append([]string{"run", "-q", "-j1", "-o", "-", "--format", test.format}, test.args...)...)
		if diff := cmp.Diff(test.want, comparable(k.take(), "Content-Length")); diff != "" {
			t.Errorf("%s (-file +sent):\n%.3000s", test.args[0], diff)
		}
	}
}

// meter is a service that takes so many requests and tokens within a window, and puts
// off one request of some: what comes then is over.
type meter struct {
	window           time.Duration
	requests, tokens int
	mu               sync.Mutex
	came             []spending // within the window
	inWindow         int        // tokens of those
	all, over        int
	mostRequests     int
	mostTokens       int
}

type spending struct {
	at     time.Time
	tokens int
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Input     string
		MaxTokens int `json:"max_tokens"`
	}
	json.NewDecoder(r.Body).Decode(&asked)
	if m.take(time.Now(), (len(asked.Input)+3)/4+asked.MaxTokens) {
		w.Header().Set("Retry-After-Ms", "20")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	w.Header().Set("X-Request-Id", "req-"+strings.Fields(asked.Input)[1])
	json.NewEncoder(w).Encode(map[string]string{"output": asked.Input})
}

// take counts a request, and reports whether it is refused.
func (m *meter) take(now time.Time, tokens int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.came) > 0 && now.Sub(m.came[0].at) > m.window {
		m.inWindow -= m.came[0].tokens
		m.came = m.came[1:]
	}
	m.came = append(m.came, spending{now, tokens})
	m.inWindow += tokens
	m.mostRequests, m.mostTokens = max(m.mostRequests, len(m.came)), max(m.mostTokens, m.inWindow)
	m.all++
	if len(m.came) > m.requests || m.inWindow > m.tokens {
		m.over++
		return true
	}
	return m.all%500 == 0 // it has a bad moment
}

// TestBatchAgainstAMeter runs a whole batch against a service that counts requests and
// tokens in a minute, which is a second here, and turns the results back.
func TestBatchAgainstAMeter(t *testing.T) {
	t.Chdir(t.TempDir())
	count, rate := 2_000, 500
	if os.Getenv("AGENTLIMIT_LONG") != "" {
		count, rate = 50_000, 4_000
	}
	burst, tokens := rate/10, rate*30 // a second
	var batch strings.Builder
	for i := range count {
		fmt.Fprintf(&batch, `{"custom_id":"r-%d","method":"POST","url":"/v1/x","body":{"max_tokens":%d,"input":"text %d %s"}}`+"\n", i, i%40, i, strings.Repeat("x", i%100))
	}
	writeFiles(t, map[string]string{
		"batch.jsonl": batch.String(),
		"limits.yaml": fmt.Sprintf("limits:\n  hosts: {'*': {rate: %d/s, burst: %d}}\n  pools: {llm: {rate: %d/s, burst: %d}}\n", rate, burst, tokens, tokens/10),
	})
	// What was admitted may be on its way for a while, so as many calls as are under way
	// at once may fall into one more window: 16, of up to 67 tokens.
	m := &meter{window: time.Second, requests: rate + burst + 16, tokens: tokens + tokens/10 + 16*67}
	server := httptest.NewServer(m)
	defer server.Close()
	format := []string{"--base-url", server.URL, "--token-pool", "llm"}
	agentlimit(t, append([]string{"run", "-q", "--format", "openai-batch", "limits.yaml", "batch.jsonl", "-o", "out.jsonl"}, format...)...)
	if m.over > 0 || m.all < count+count/501 {
		t.Errorf("the service had %d requests, %d of them over its limits: at most %d and %d tokens in a second", m.all, m.over, m.mostRequests, m.mostTokens)
	}
	t.Logf("%d requests, at most %d (of %d) and %d tokens (of %d) in a second", m.all, m.mostRequests, m.requests, m.mostTokens, m.tokens)
	agentlimit(t, append([]string{"audit", "out.jsonl", "--jobs", "limits.yaml", "--jobs", "batch.jsonl", "--input-format", "openai-batch"}, format...)...)

	lines := strings.NewReader(agentlimit(t, "report", "out.jsonl", "--format", "openai-batch"))
	seen := make(map[string]bool)
	for d := json.NewDecoder(lines); ; {
		var line struct {
			CustomID string `json:"custom_id"`
			Response *struct {
				StatusCode int    `json:"status_code"`
				RequestID  string `json:"request_id"`
				Body       struct{ Output string }
			}
			Error any
		}
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		number := strings.TrimPrefix(line.CustomID, "r-")
		r := line.Response
		if r == nil || r.StatusCode != 200 || r.RequestID != "req-"+number || !strings.HasPrefix(r.Body.Output, "text "+number+" ") || line.Error != nil || seen[number] {
			t.Fatalf("the output of %s is %+v, %v", line.CustomID, r, line.Error)
		}
		seen[number] = true
	}
	if len(seen) != count {
		t.Errorf("%d of %d requests have an output", len(seen), count)
	}
}
