package jobspec_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// batch is a file as OpenAI documents it, with what real ones have besides.
var batch = "\xef\xbb\xbf" + `{"custom_id": "request-1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": [{"role": "user", "content": "2+2?"}], "max_tokens": 1000}}` + "\r\n" +
	"\r\n" +
	`{"body": { "input" : "é\u00e9 ${env:TOKEN} $${x} \"q\"", "n":1.50e1 }, "url": "/v1/embeddings?a=${var:x}", "custom_id": "zwölf 日本 ${job:id}", "method": "POST", "tokens": 7}` + "\n" +
	`{"custom_id":"big","method":"POST","url":"/v1/x","body":{"input":"` + strings.Repeat("x", 300<<10) + `"}}` + "\n   \n" +
	`{"custom_id":"0012","method":"GET","url":"/v1/models"}`

var batchOptions = jobspec.Options{
	Format: jobspec.OpenAIBatch,
	Requests: jobspec.Requests{
		BaseURL: "https://api.example.com/", Headers: map[string]string{"Authorization": "Bearer ${env:TOKEN}"}, CostField: "tokens",
	},
	Env: environment,
}

func TestBatch(t *testing.T) {
	o := batchOptions
	o.Files = written(t, map[string]string{"batch.jsonl": batch})
	s, err := jobspec.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	jobs := drain(t, s)
	auth := jobspec.Header{Name: "Authorization", Value: "Bearer tok-1234567"}
	sent := []jobspec.Header{{Name: "Content-Type", Value: "application/json"}, auth}
	lines := strings.Split(batch, "\n")
	body := func(line int) []byte {
		_, rest, _ := strings.Cut(lines[line], `"body":`)
		text, _, _ := strings.Cut(rest, `, "url"`)
		if line != 2 {
			text = strings.TrimSuffix(strings.TrimSpace(rest), "}")
		}
		return []byte(strings.TrimSpace(text))
	}
	want := []*jobspec.HTTP{
		{Method: "POST", URL: "https://api.example.com/v1/chat/completions", Headers: sent, Body: body(0)},
		{Method: "POST", URL: "https://api.example.com/v1/embeddings?a=${var:x}", Headers: sent, Body: body(2)},
		{Method: "POST", URL: "https://api.example.com/v1/x", Headers: sent, Body: body(3)},
		{Method: "GET", URL: "https://api.example.com/v1/models", Headers: []jobspec.Header{auth}},
	}
	var got []*jobspec.HTTP
	var ids []string
	for _, j := range jobs {
		got, ids = append(got, j.HTTP), append(ids, j.ID)
		if j.Output.Inline != 8<<20 {
			t.Errorf("%s: output.inline = %d", j.ID, j.Output.Inline)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%.3000s", diff)
	}
	if diff := cmp.Diff([]string{"request-1", "zwölf 日本 ${job:id}", "big", "0012"}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if pos := jobs[1].Pos.String(); pos != "batch.jsonl:3:1" {
		t.Errorf("the second is at %s", pos)
	}
}

// TestBatchTokens gives lines what their tokens are, by the rule and by fields.
func TestBatchTokens(t *testing.T) {
	const limits = "limits: {pools: {llm: {rate: 9000/m, burst: 9000}}}\ndefaults: {output: {inline: 1KiB}}\n"
	for _, test := range []struct {
		what, rest, field string
		want              int64 // -1: an error
	}{
		{"no text", `"body":{}`, "", 0},
		{"five bytes of text", `"body":{"input":"ab cd"}`, "", 2},
		{"bytes, not letters or what is escaped", `"body":{"input":"é\n😀"}`, "", 2},
		{"names of fields are none", `"body":{"input":[{"long name of a field":1}]}`, "", 0},
		{"texts at any depth", `"body":{"model":"mmmm","messages":[{"role":"user","content":[{"text":"12345678"}]}]}`, "", 4},
		{"and the answer", `"body":{"input":"1234","max_tokens":300}`, "", 301},
		{"its new name, of which the largest counts", `"body":{"max_completion_tokens":500,"max_output_tokens":40}`, "", 500},
		{"spelt in other ways", `"body":{"max_tokens":1e3,"max_output_tokens":1000.5}`, "", 1001},
		{"below zero", `"body":{"input":"1234","max_tokens":-5}`, "", 1},
		{"of several answers", `"body":{"n":3,"max_tokens":300,"best_of":2}`, "", 900},
		{"far more than the pool holds", `"body":{"max_tokens":1e300,"n":1e300}`, "", -1},
		{"but not below", `"body":{"a":{"max_tokens":300}}`, "", 0},
		{"a field of the line", `"tokens":12,"body":{"max_tokens":300,"tokens":9}`, "tokens", 12},
		{"a field of the body", `"body":{"max_tokens":300}`, "max_tokens", 300},
		{"a field in quotes", `"tokens":"12","body":{}`, "tokens", 12},
		{"a field that is missing", `"body":{"max_tokens":300}`, "tokens", -1},
		{"a field that is no number", `"tokens":[1],"body":{}`, "tokens", -1},
		{"more than the pool holds", `"body":{"max_tokens":9001}`, "", -1},
	} {
		o := batchOptions
		write(t, map[string]string{"limits.yaml": limits, "batch.jsonl": `{"custom_id":"a","method":"POST","url":"/x",` + test.rest + "}"})
		o.Files = []string{"limits.yaml", "batch.jsonl"}
		o.Requests.TokenPool, o.Requests.CostField = "llm", test.field
		s, err := jobspec.Load(o)
		if err != nil || test.want < 0 {
			if err == nil || test.want >= 0 || !strings.HasPrefix(err.Error(), "batch.jsonl:1:") {
				t.Errorf("%s: Load = %v", test.what, err)
			}
			continue
		}
		j := drainOne(t, s)
		if len(j.PoolCost) != 1 || j.PoolCost[0] != test.want || j.Cost != 1 || j.Output.Inline != 1<<10 {
			t.Errorf("%s: costs %d of %v and %d, keeps %d", test.what, j.PoolCost, j.Pools, j.Cost, j.Output.Inline)
		}
		s.Close()
	}
}

// TestRequestsRefused wants what is wrong to be named with its place.
func TestRequestsRefused(t *testing.T) {
	for _, test := range []struct{ what, format, text, want string }{
		{"a doubled custom_id", "openai-batch", batchOf(`"custom_id":"a"`) + "\n\n" + batchOf(`"custom_id":"a"`), `a.jsonl:3:14: id: "a": doubled id, first at a.jsonl:1`},
		{"no custom_id", "openai-batch", `{"method":"POST","url":"/x","body":{}}`, `a.jsonl:1:1: custom_id: want a text`},
		{"a number as one", "openai-batch", batchOf(`"custom_id":1`), `a.jsonl:1:14: custom_id: want a text`},
		{"an unknown key", "openai-batch", batchOf(`"custom_id":"a","headers":{}`), `a.jsonl:1:28: headers: unknown key: want custom_id, method, url, body`},
		{"a whole URL", "openai-batch", `{"custom_id":"a","method":"POST","url":"http://evil/","body":{}}`, `a.jsonl:1:40: url: want a path, such as /v1/chat/completions, which the base URL is put in front of`},
		{"a body that is a text", "openai-batch", `{"custom_id":"a","method":"POST","url":"/","body":"{}"}`, `a.jsonl:1:51: body: want an object`},
		{"a doubled key in the body", "openai-batch", `{"custom_id":"a","method":"POST","url":"/","body":{"a":1,"a":2}}`, `a.jsonl:1:58: doubled key "a"`},
		{"a body cut short", "openai-batch", `{"custom_id":"a","method":"POST","url":"/","body":{"a":1`, `a.jsonl:1:57: the JSON value is cut short`},
		{"a list", "openai-batch", `[]`, `a.jsonl:1:1: want an object with custom_id, method, url and body`},
		{"no URL", "vegeta", "GET\n", `a.jsonl:1:1: want a method and a URL, such as GET http://example.com/`},
		{"a header that is none", "vegeta", "GET http://h/\nX-A\n", `a.jsonl:2:1: want a header, such as Accept: text/plain, or @ and the file of the body`},
		{"a header behind the body", "vegeta", "# c\nGET http://h/\n@a\nX-A: b\n", `a.jsonl:4:1: want nothing behind the body but a blank line or the next target`},
		{"a URL of another kind", "vegeta", "GET ftp://h/\n", `a.jsonl:1:1: http.url: want a URL that begins with http:// or https:// and a host (the value is not shown, it may hold secrets)`},
		{"an unknown key of an object", "vegeta", `{"method":"GET","url":"http://h/","x":1}`, `a.jsonl:1:39: x: want method, url and body, texts, and header, an object of lists`},
		{"an object without a URL", "vegeta", `{"method":"GET"}`, `a.jsonl:1:1: want a method and a url`},
		{"a body that is not in base64", "vegeta", `{"method":"GET","url":"http://h/","body":"?"}`, `a.jsonl:1:42: http.body_base64: want bytes in base64 (RFC 4648, section 4)`},
	} {
		o := batchOptions
		o.Files, o.Format = written(t, map[string]string{"a.jsonl": test.text}), test.format
		o.Requests.CostField = ""
		_, err := jobspec.Load(o)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: Load = %v\nwant %s", test.what, err, test.want)
		}
	}
}

func batchOf(fields string) string { return `{` + fields + `,"method":"POST","url":"/","body":{}}` }

// targets are files of vegeta, after its README, and what they stand for.
var targets = []struct {
	what, text string
	want       []*jobspec.HTTP
}{
	{"targets one a line", "GET http://goku:9090/path/to/dragon?item=ball\nGET http://user:password@goku:9090/path/to\nHEAD http://goku:9090/path/to/success\n", []*jobspec.HTTP{
		{Method: "GET", URL: "http://goku:9090/path/to/dragon?item=ball"}, {Method: "GET", URL: "http://user:password@goku:9090/path/to"}, {Method: "HEAD", URL: "http://goku:9090/path/to/success"},
	}},
	{"headers, comments and CRLF", "# the first\r\nGET http://user:password@goku:9090/path/to\r\nX-Account-ID: 8675309\r\n# within\r\nx-account-id: 2\r\n\r\n\r\nDELETE http://goku:9090/path/to/remove\r\nConfirmation-Token: 90215\r\nAuthorization: Token ${env:TOKEN}\r\n", []*jobspec.HTTP{
		{Method: "GET", URL: "http://user:password@goku:9090/path/to", Headers: []jobspec.Header{{Name: "X-Account-ID", Value: "8675309"}, {Name: "X-Account-ID", Value: "2"}, {Name: "X-All", Value: "1"}}},
		{Method: "DELETE", URL: "http://goku:9090/path/to/remove", Headers: []jobspec.Header{{Name: "Confirmation-Token", Value: "90215"}, {Name: "Authorization", Value: "Token ${env:TOKEN}"}, {Name: "X-All", Value: "1"}}},
	}},
	{"bodies", "POST http://goku:9090/things\n@path/to/newthing.json\n\nPATCH http://goku:9090/thing/71988591\nx-all: own\n@/abs/thing.json\nGET http://goku:9090/", []*jobspec.HTTP{
		{Method: "POST", URL: "http://goku:9090/things", BodyFile: "path/to/newthing.json"},
		{Method: "PATCH", URL: "http://goku:9090/thing/71988591", BodyFile: "/abs/thing.json", Headers: []jobspec.Header{{Name: "x-all", Value: "own"}}},
		{Method: "GET", URL: "http://goku:9090/"},
	}},
	{"objects", `{"method":"POST","url":"http://goku/${env:TOKEN}","body":"` + base64.StdEncoding.EncodeToString([]byte("\x00\xff${x}")) + `","header":{"X-A":["1","2"],"Accept":["é"]}}` + "\r\n\n" + `{"method":"GET","url":"http://goku/","header":null,"body":""}`, []*jobspec.HTTP{
		{Method: "POST", URL: "http://goku/${env:TOKEN}", Body: []byte("\x00\xff${x}"), Headers: []jobspec.Header{{Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "Accept", Value: "é"}}},
		{Method: "GET", URL: "http://goku/"},
	}},
}

// TestVegeta reads the targets of a file in a folder, and of a pipe in small parts.
func TestVegeta(t *testing.T) {
	for _, test := range targets {
		for _, h := range test.want {
			if len(h.Headers) == 0 || h.Headers[len(h.Headers)-1].Name != "X-All" && h.Headers[0].Name != "x-all" {
				h.Headers = append(h.Headers, jobspec.Header{Name: "X-All", Value: "1"})
			}
		}
		o := jobspec.Options{Format: jobspec.Vegeta, Requests: jobspec.Requests{Headers: map[string]string{"X-All": "1"}}}
		for _, name := range []string{"sub/targets.txt", "-"} {
			write(t, map[string]string{"sub/targets.txt": test.text})
			o.Files, o.Stdin = []string{name}, oneByte{strings.NewReader(test.text)}
			s, err := jobspec.Load(o)
			if err != nil {
				t.Fatalf("%s: Load = %v", test.what, err)
			}
			var got []*jobspec.HTTP
			for _, j := range drain(t, s) {
				got = append(got, j.HTTP)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", test.what, name, diff)
			}
			s.Close()
		}
	}
}

// TestRequestsBesideJobs reads limits and jobs of a YAML file beside a batch, defers it
// and reads that again.
func TestRequestsBesideJobs(t *testing.T) {
	write(t, map[string]string{
		"jobs.yaml":  "limits: {hosts: {api.example.com: {rate: 9/s}}}\ndefaults: {account: a}\njobs:\n- id: own\n  http: {url: 'http://h/'}\n",
		"batch.list": batchOf(`"custom_id":"${var:a} b"`), "token": "t-12345678\n",
	})
	o := batchOptions
	o.Files, o.Written = []string{"jobs.yaml", "batch.list"}, true
	o.Requests.Headers = map[string]string{"Authorization": "${file:token}"}
	s, err := jobspec.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text strings.Builder
	again := s.NewRewrite(&text)
	jobs := drain(t, s)
	for _, j := range jobs {
		if j.Account != "a" {
			t.Errorf("%s: account %q", j.ID, j.Account)
		}
		if _, err := again.Add(j, j.NotBefore.At); err != nil {
			t.Fatal(err)
		}
	}
	again.Close()
	read := loadAll(t, text.String(), jobspec.Options{Files: written(t, map[string]string{"later.json": text.String()}), Env: environment})
	var want []string
	for _, j := range jobs {
		want = append(want, fmt.Sprint(j.ID, j.HTTP, j.Exec))
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}
