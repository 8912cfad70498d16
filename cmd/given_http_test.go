package cmd_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

// The body is sent whole on every try, or, if its file is not what it was, not
// at all.
func TestBodiesAreSentWholeOnEveryTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := strings.Repeat("0123456789abcdef", 200<<10/16)
	for _, name := range []string{"big", "gone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(big), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
		if nth == 1 {
			os.Remove(filepath.Join(dir, r.URL.Path))
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p := perform(t, s.URL, fmt.Sprintf(`
limits: {hosts: {"*": {concurrency: 3}}}
defaults: {retry: {backoff: {initial: 20ms}}}
jobs:
- {id: file, http: {method: POST, url: "${var:base}/file", body_file: %[1]s/big}}
- {id: inline, http: {method: POST, url: "${var:base}/inline", body: twenty bytes of text}}
- {id: gone, http: {method: POST, url: "${var:base}/gone", body_file: %[1]s/gone}}
`, dir))
	p.exits(t, 1)
	want := map[string]end{
		"file":   {results.Succeeded, 2, 200, "", ""},
		"inline": {results.Succeeded, 2, 200, "", ""},
		"gone":   {results.Failed, 2, 0, "", "file"},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	for path, body := range map[string]string{"/file": big, "/inline": "twenty bytes of text"} {
		tries := s.visits(path)
		for _, v := range tries {
			if len(v.body) != len(body) || sha256.Sum256([]byte(v.body)) != sha256.Sum256([]byte(body)) {
				t.Errorf("%s came with %d bytes, want the %d of the job", path, len(v.body), len(body))
			}
		}
		if diff := cmp.Diff(tries[0].header, tries[1].header); diff != "" {
			t.Errorf("headers of %s (-first +second try):\n%s", path, diff)
		}
	}
	if n := len(s.visits("/gone")); n != 1 {
		t.Errorf("the job whose file is gone was sent %d times, want once", n)
	}
}

// What came back last stays in the record when a job is given up.
func TestTheLastAnswerSurvivesGivingUp(t *testing.T) {
	t.Parallel()
	s := receive(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/down":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"why":"db down"}`)
		case "/hangup":
			hangUp()
		}
	})
	p := perform(t, s.URL, fmt.Sprintf(`
limits: {hosts: {"*": {concurrency: 5}}}
defaults: {retry: {attempts: 3, backoff: {initial: 20ms}}}
jobs:
- {id: down, http: {url: "${var:base}/down"}}
- {id: refused, http: {url: "http://%[1]s/"}}
- {id: refused-post, http: {method: POST, url: "http://%[1]s/"}}
- {id: lost, http: {url: "${var:base}/hangup"}}
- {id: lost-post, http: {method: POST, url: "${var:base}/hangup"}}
- {id: lost-post-with-a-key, http: {method: POST, url: "${var:base}/hangup", headers: {Idempotency-Key: k-1}}}
`, nobody(t)))
	p.exits(t, 1)
	want := map[string]end{
		"down":                 {results.Failed, 3, 500, `{"why":"db down"}`, "status"},
		"refused":              {results.Failed, 3, 0, "", "connect"},
		"refused-post":         {results.Failed, 3, 0, "", "connect"},
		"lost":                 {results.Failed, 3, 0, "", "lost"},
		"lost-post":            {results.Unknown, 1, 0, "", "lost"},
		"lost-post-with-a-key": {results.Failed, 3, 0, "", "lost"},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	if got := p.records["down"].HTTP.Headers["Content-Type"]; len(got) != 1 || got[0] != "application/json" {
		t.Errorf("recorded Content-Type %q, want the answer's", got)
	}
	if r := p.records["refused"]; !strings.Contains(r.Error.Message, "refused") || r.Attempts[0].Error == "" || r.Attempts[1].Waited.Backoff < 10 {
		t.Errorf("refused: %+v, %+v, want the network's words, in each attempt, and the backoff between", r.Error, r.Attempts)
	}
}

// Twenty calls at once need about twenty connections, whatever the answers.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 1024)
	codes := []int{200, 404, 500}
	s := receive(t, func(w http.ResponseWriter, r *http.Request, nth int) {
		w.WriteHeader(codes[nth%3])
		io.WriteString(w, body)
	})
	p := perform(t, s.URL, `
limits: {global: {concurrency: 20}, hosts: {"*": {concurrency: 20}}}
defaults: {retry: {attempts: 1}}
jobs:
`+fill(2000, func(int) string { return `- {http: {url: "${var:base}/"}}` }))
	p.exits(t, 1)
	count := make(map[results.Status]int)
	for _, r := range p.inOrder {
		count[r.Status]++
		if r.HTTP == nil || r.HTTP.Body != body {
			t.Fatalf("%s: %+v, want the answer's body", r.ID, r)
		}
	}
	if count[results.Succeeded] != 666 || count[results.Failed] != 1334 {
		t.Errorf("2000 jobs ended as %v", count)
	}
	if s.Close(); s.conns > 40 {
		t.Errorf("2000 requests, 20 at once, took %d connections", s.conns)
	}
}

// Answers that are big, packed, slow, short or empty harm no other job.
func TestAwkwardAnswers(t *testing.T) {
	t.Parallel()
	packed := strings.Repeat("\x1f\x8b\x00\x01", 1<<18)
	const streamed = 64 << 20
	s := receive(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, packed)
		case "/streamed":
			for range streamed / len(packed) {
				io.WriteString(w, packed)
			}
		case "/dripping":
			w.Header().Set("Content-Length", "20000")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/short":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, strings.Repeat("x", 50))
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/head":
			w.Header().Set("Content-Length", "500")
		case "/bytes":
			io.WriteString(w, "\xff\x00\xfeA")
		default:
			io.WriteString(w, "hello")
		}
	})
	p := perform(t, s.URL, `
limits: {hosts: {"*": {concurrency: 10}}}
defaults: {retry: {attempts: 1}}
jobs:
- {id: packed, http: {url: "${var:base}/packed"}}
- {id: streamed, http: {url: "${var:base}/streamed"}}
- {id: dripping, timeout: 300ms, retry: {attempts: 2, backoff: {initial: 20ms}}, http: {url: "${var:base}/dripping"}}
- {id: short, http: {url: "${var:base}/short"}}
- {id: nothing, http: {url: "${var:base}/nothing"}}
- {id: head, http: {method: HEAD, url: "${var:base}/head"}}
- {id: bytes, http: {url: "${var:base}/bytes"}}
- {id: plain, http: {url: "${var:base}/plain"}}
`)
	p.exits(t, 1)
	first := base64.StdEncoding.EncodeToString([]byte(packed[:64<<10]))
	want := map[string]end{
		"packed":   {results.Succeeded, 1, 200, first, ""},
		"streamed": {results.Succeeded, 1, 200, first, ""},
		"dripping": {results.Failed, 2, 429, "x", "status"},
		"short":    {results.Failed, 1, 200, strings.Repeat("x", 50), "lost"},
		"nothing":  {results.Succeeded, 1, 204, "", ""},
		"head":     {results.Succeeded, 1, 200, "", ""},
		"bytes":    {results.Succeeded, 1, 200, "/wD+QQ==", ""},
		"plain":    {results.Succeeded, 1, 200, "hello", ""},
	}
	if diff := cmp.Diff(want, p.ends()); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	for id, size := range map[string]int64{"packed": int64(len(packed)), "streamed": streamed, "bytes": 4, "plain": 5} {
		h := p.records[id].HTTP
		if h.BodyBytes != size || h.Truncated != (size > 64<<10) || (h.Encoding == "base64") != (id != "plain") {
			t.Errorf("%s: %d bytes, truncated %v, encoding %q; want %d bytes", id, h.BodyBytes, h.Truncated, h.Encoding, size)
		}
	}
	for _, a := range p.records["dripping"].Attempts {
		if took := a.EndedAt.Sub(a.StartedAt.Time); took < 300*time.Millisecond || took > 300*time.Millisecond+late {
			t.Errorf("an answer that drips held its permit for %v, want 300 ms", took)
		}
	}
}

// Plain words and numbers reach the record, the limits and the wire as typed.
func TestWordsStayAsTyped(t *testing.T) {
	t.Parallel()
	s := receive(t, func(http.ResponseWriter, *http.Request, int) {})
	words := []string{"no", "on", "0123", "0898", "12345678901234567890", "1e3", "1_000", "2024-01-02", "1.10", "y", "Yes", "0x1f", "x", "X"}
	p := perform(t, s.URL, `
limits: {hosts: {"*": {concurrency: 5}}, accounts: {"*": {concurrency: 1}, no: {concurrency: 2}}}
jobs:
`+fill(len(words), func(i int) string {
		return strings.ReplaceAll(`- {id: WORD, account: WORD, labels: {WORD: WORD}, http: {url: "${var:base}/WORD", headers: {A: WORD}}}`, "WORD", words[i])
	}))
	p.exits(t, 0)
	for _, word := range words {
		r := p.records[word]
		if r.ID != word || r.Account != word || r.Labels[word] != word || len(r.Attempts) != 1 {
			t.Errorf("job %s has the record %+v", word, r)
		}
		paid := false
		for key := range r.Attempts[0].Charge {
			paid = paid || key.String() == "account/"+word
		}
		if sent := s.visits("/" + word); !paid || len(sent) != 1 || sent[0].header.Get("A") != word {
			t.Errorf("job %s: charged %v, sent %+v", word, r.Attempts[0].Charge, sent)
		}
	}
}
