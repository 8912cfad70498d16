package jobspec_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

// environment stands for the environment of every test.
func environment(name string) (string, bool) {
	value, set := map[string]string{
		"TOKEN":   "tok-1234567",
		"LONGER":  "a-longer-secret",
		"SHORT":   "pin",
		"SLASH":   "Part1/rest",
		"WEBHOOK": "https://hooks.example/T0K/x",
		"NEWLINE": "abc-defgh\n",
		"LINES":   "ab\ncd",
		"EMPTY":   "",
		"REGION":  "eu-north",
		"TRICKY":  "${var:base}",
	}[name]
	return value, set
}

// write puts files into a folder of their own, which becomes the working folder.
func write(t testing.TB, files map[string]string) {
	t.Helper()
	t.(interface{ Chdir(string) }).Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// load reads one file of that name.
func load(t testing.TB, name, text string) (*jobspec.Spec, error) {
	t.Helper()
	write(t, map[string]string{name: text})
	return jobspec.Load(jobspec.Options{Files: []string{name}, Env: environment})
}

// drain returns the jobs of a source.
func drain(t testing.TB, s *jobspec.Spec) (jobs []*jobspec.Job) {
	t.Helper()
	for {
		j, err := s.Source.Next()
		if err == io.EOF {
			return jobs
		}
		if err != nil {
			t.Fatalf("Next() = %v", err)
		}
		j.Done() // so that the next is the next of the file
		jobs = append(jobs, j)
	}
}

// jobsOf returns the jobs of a file that must be right.
func jobsOf(t testing.TB, name, text string) []*jobspec.Job {
	t.Helper()
	s, err := load(t, name, text)
	if err != nil {
		t.Fatalf("Load(%s) = %v, of\n%s", name, err, text)
	}
	return drain(t, s)
}

// one returns the only job of a YAML file whose job has these fields.
func one(t testing.TB, fields string) *jobspec.Job {
	t.Helper()
	return jobsOf(t, "jobs.yaml", "vars: {base: b}\njobs:\n  - {"+fields+"}\n")[0]
}

const get = `http: {url: "http://h/"}`

func TestWholeExample(t *testing.T) {
	s, err := load(t, "jobs.yaml", `
version: 1
limits:
  global: {concurrency: 64}
  coordinator: folder
  hosts:
    API.example.com: {concurrency: 4, rate: 10/s, burst: 20}
    "*.example.org": {concurrency: 8, rate: 600/m}
    "*": {concurrency: 4}
  accounts:
    team-a: {concurrency: 2, rate: 100/m, burst: 10}
  pools:
    llm-tokens: {rate: 90000/m, burst: 90000}
    gpu: {concurrency: 1}
vars: {base: "https://api.example.com"}
public_env: [REGION]
defaults:
  timeout: 30s
  deadline: 15m
  retry: {attempts: 3}
  labels: {team: x}
jobs:
  - id: list-users
    account: team-a
    http:
      url: ${var:base}/users
      headers: {Authorization: "Bearer ${env:TOKEN}"}
  - id: summarise
    cost: {requests: 2, llm-tokens: 1200}
    labels: {kind: chat}
    retry: {max_wait: 1m}
    http: {method: POST, url: "${var:base}/chat", json: {prompt: "..."}}
  - id: thumb
    host: gpu-box
    pools: [gpu]
    priority: -1
    timeout: none
    exec: {argv: [convert, "${env:REGION}.png"]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if s.Global != 64 || s.Coordinator != "folder" || s.Jobs != 3 || !cmp.Equal(s.PublicEnv, []string{"REGION"}) || len(s.Warnings) > 0 {
		t.Errorf("Load() = %+v", s)
	}
	if got := s.Limits.For(limits.Key{Kind: limits.Host, Name: "api.example.com"}); got.Concurrency != 4 || got.Burst != 20 {
		t.Errorf("limit of api.example.com = %+v", got)
	}
	base := jobspec.Job{
		Cost: 1, Timeout: 30 * time.Second, Deadline: jobspec.When{After: 15 * time.Minute, Set: true},
		Retry: jobspec.Retry{Attempts: 3, Initial: 500 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2,
			OnStatus: []int{408, 425, 429, 500, 502, 503, 504}, OnExit: []int{75}, MaxWait: 5 * time.Minute},
		Expect: jobspec.Expect{Status: []jobspec.StatusRange{{Low: 200, High: 299}}, ExitCodes: []int{0}},
		Output: jobspec.Output{Inline: 65536},
		Labels: map[string]string{"team": "x"},
	}
	base.Secrets = []string{"tok-1234567"} // of the whole run
	users, chat, thumb := base, base, base
	users.Seq, users.ID, users.Host, users.Account = 1, "list-users", "api.example.com", "team-a"
	users.HTTP = &jobspec.HTTP{Method: "GET", URL: "https://api.example.com/users", Headers: []jobspec.Header{{Name: "Authorization", Value: "Bearer tok-1234567"}}}
	chat.Seq, chat.ID, chat.Host, chat.Cost = 2, "summarise", "api.example.com", 2
	chat.Pools, chat.PoolCost = []string{"llm-tokens"}, []int64{1200}
	chat.Labels = map[string]string{"team": "x", "kind": "chat"}
	chat.Retry.MaxWait = time.Minute
	chat.HTTP = &jobspec.HTTP{Method: "POST", URL: "https://api.example.com/chat", Body: []byte(`{"prompt":"..."}`), ContentType: "application/json"}
	thumb.Seq, thumb.ID, thumb.Host, thumb.Priority, thumb.Timeout = 3, "thumb", "gpu-box", -1, 0
	thumb.Pools, thumb.PoolCost = []string{"gpu"}, []int64{1}
	thumb.Exec = &jobspec.Exec{Argv: []string{"convert", "eu-north.png"}, InheritEnv: true}
	want := []*jobspec.Job{&users, &chat, &thumb}
	got := drain(t, s)
	for _, j := range got {
		if !strings.HasPrefix(j.Hash, "sha256:") || j.Pos.Line == 0 {
			t.Errorf("job %s: hash %q, position %v", j.ID, j.Hash, j.Pos)
		}
		j.Hash, j.Pos = "", jobspec.Position{}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(jobspec.Job{})); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestDefaultTimeoutDependsOnKind(t *testing.T) {
	if got := one(t, get).Timeout; got != time.Minute {
		t.Errorf("timeout of a request = %v", got)
	}
	if got := one(t, `exec: {argv: [x]}`).Timeout; got != 0 {
		t.Errorf("timeout of a command = %v", got)
	}
}

func TestHeadersAndBytes(t *testing.T) {
	h := one(t, `http: {url: "http://h/", headers: {A: [x, 1], B: y}, body_base64: AP8=}`).HTTP
	if diff := cmp.Diff([]jobspec.Header{{Name: "A", Value: "x"}, {Name: "A", Value: "1"}, {Name: "B", Value: "y"}}, h.Headers); diff != "" {
		t.Errorf("a list repeats its header (-want +got):\n%s", diff)
	}
	if got := string(h.Body); got != "\x00\xff" {
		t.Errorf("body = %q", got)
	}
}

func TestDefaultsMerge(t *testing.T) {
	jobs := jobsOf(t, "sub/jobs.yaml", `
defaults:
  http: {url: "http://h/", headers: {accept: a, X-B: b}, body: default}
  exec: {argv: [true], env: {A: "1", B: "2"}, dir: work}
  retry: {attempts: 2, backoff: {initial: 1s}}
  cost: {requests: 3}
jobs:
  - http: {headers: {Accept: own}, json: [1]}
  - http: {}
  - exec: {shell: "exit 0", env: {B: own}}
    cost: 5
    retry: {backoff: {max: 2s}}
`)
	if diff := cmp.Diff([]jobspec.Header{{Name: "X-B", Value: "b"}, {Name: "Accept", Value: "own"}}, jobs[0].HTTP.Headers); diff != "" {
		t.Errorf("headers merge by name, whatever its case (-want +got):\n%s", diff)
	}
	if got := string(jobs[0].HTTP.Body); got != "[1]" {
		t.Errorf("a job's json beside a default body: body = %q", got)
	}
	if got := string(jobs[1].HTTP.Body); got != "default" {
		t.Errorf("default body = %q", got)
	}
	want := &jobspec.Exec{Shell: "exit 0", Env: []jobspec.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "own"}}, Dir: filepath.Join("sub", "work"), InheritEnv: true}
	if diff := cmp.Diff(want, jobs[2].Exec); diff != "" {
		t.Errorf("exec (-want +got):\n%s", diff)
	}
	if r := jobs[2].Retry; r.Attempts != 2 || r.Initial != time.Second || r.Max != 2*time.Second || jobs[2].Cost != 5 {
		t.Errorf("retry = %+v, cost = %d", r, jobs[2].Cost)
	}
}

func TestFilesJoin(t *testing.T) {
	write(t, map[string]string{
		"a/limits.yaml": "limits: {hosts: {h: {rate: 1/s}}, pools: {p: {concurrency: 1}}}\nvars: {x: one}\ndefaults: {http: {body_file: in.txt}}\npublic_env: [REGION]\n",
		"b.json":        `{"limits": {"hosts": {"h": {"rate": "1/s", "concurrency": 2}}}, "public_env": ["TOKEN"], "jobs": [{"http": {"url": "http://h/${var:x}"}}]}`,
		"c.jsonl":       `{"id": "c", "pools": ["p"], "http": {"url": "http://h/${var:y}", "body_file": "own.txt"}}`,
	})
	s, err := jobspec.Load(jobspec.Options{Files: []string{"a/limits.yaml", "b.json", "c.jsonl"}, Vars: map[string]string{"y": "two", "x": "flag"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Limits.For(limits.Key{Kind: limits.Host, Name: "h"}); got.Concurrency != 2 || got.Burst != 1 {
		t.Errorf("joined limit = %+v", got)
	}
	jobs := drain(t, s)
	if got := []string{jobs[0].HTTP.URL, jobs[0].HTTP.BodyFile, jobs[1].HTTP.URL, jobs[1].HTTP.BodyFile}; !cmp.Equal(got, []string{"http://h/flag", filepath.Join("a", "in.txt"), "http://h/two", "own.txt"}) {
		t.Errorf("a path is relative to the file it is written in, a var of a flag wins: %q", got)
	}
	if !cmp.Equal(s.PublicEnv, []string{"REGION", "TOKEN"}) {
		t.Errorf("PublicEnv = %q", s.PublicEnv)
	}
}

func TestStandardInput(t *testing.T) {
	const line = `{"id":"a","http":{"url":"http://h/"}}`
	for _, test := range []struct {
		about, format, text string
		ids                 string
		streamed            bool
	}{
		{"a first line that is a whole job makes lines", "", line + "\n" + strings.Replace(line, "a", "b", 1), "a b", true},
		{"a mark in front and CRLF ends change nothing", "", "\xef\xbb\xbf" + line + "\r\n\r\n" + strings.Replace(line, "a", "b", 1) + "\r\n", "a b", true},
		{"blank lines come first", "", "\n \n" + line, "a", true},
		{"an object without a call is YAML", "", `{"jobs": [` + line + `]}`, "a", false},
		{"YAML", "", "jobs:\n- id: a\n  http: {url: 'http://h/'}\n", "a", false},
		{"told to be JSON", "json", "{\n\"jobs\":\n [" + line + `]}`, "a", false},
		{"an empty stream, told to be lines", "jsonl", "", "", true},
	} {
		s, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: test.format, Stdin: strings.NewReader(test.text)})
		if err != nil {
			t.Errorf("%s: Load() = %v", test.about, err)
			continue
		}
		if streamed := s.Jobs < 0; streamed != test.streamed {
			t.Errorf("%s: streamed = %v", test.about, streamed)
		}
		var ids []string
		for _, j := range drain(t, s) {
			ids = append(ids, j.ID)
		}
		if got := strings.Join(ids, " "); got != test.ids {
			t.Errorf("%s: ids = %q, want %q", test.about, got, test.ids)
		}
	}
}

func TestPipeGoesOnBehindBadLines(t *testing.T) {
	lines := strings.Join([]string{
		`{"id":"a","http":{"url":"http://h/"}}`,
		`{"id":"a","http":{"url":"http://h/2"},"output":{"save":"b"}}`,
		`{"id":"b","http":{"url":"ftp://h/"},"retires":3}`,
		`{"id":"b","http":`,
		`{"id":"b","deadline":"1m","http":{"url":"http://h/"},"output":{"save":"b"}}`,
		`{"id":"c","http":{"url":"http://h/"},"output":{"save":"./b"}}`,
	}, "\n")
	s, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Stdin: strings.NewReader(lines)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	before := time.Now()
	for {
		j, err := s.Source.Next()
		if err == io.EOF {
			break
		}
		var bad *jobspec.Invalid
		if errors.As(err, &bad) {
			got = append(got, bad.Error())
			continue
		}
		got = append(got, j.ID)
		if j.ID == "b" && (j.Seq != 2 || j.Deadline.At.Before(before.Add(time.Minute)) || j.Deadline.After == 0) {
			t.Errorf("deadline of a line counts from when it was read: seq %d, %+v", j.Seq, j.Deadline)
		}
	}
	want := []string{
		"a",
		`<stdin>:2:7: id: "a": doubled id, first at <stdin>:1`,
		`<stdin>:3:37: retires: unknown key: did you mean "retry"?; http.url: want a URL that begins with http:// or https:// and a host (the value is not shown, it may hold secrets)`,
		`<stdin>:4:18: the JSON value is cut short`,
		"b",
		`<stdin>:6:55: output.save: "b": doubled file, first at <stdin>:5`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Next (-want +got):\n%s", diff)
	}
}

func TestInputErrors(t *testing.T) {
	write(t, map[string]string{"dir/x": "", "long.jsonl": strings.Repeat("x", 17<<20)})
	for _, test := range []struct {
		about, file, format, want string
	}{
		{"a missing file", "none.yaml", "", "read job file: open none.yaml: no such file or directory"},
		{"a folder", "dir", "", `read job file: "dir" is a folder`},
		{"an endless line", "long.jsonl", "", "long.jsonl:1: a line of over 16 MiB"},
		{"an unknown format", "dir/x", "toml", `read job files: the format "toml": want yaml, json, jsonl, openai-batch or vegeta`},
	} {
		_, err := jobspec.Load(jobspec.Options{Files: []string{test.file}, Format: test.format})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: Load(%s) = %v, want %s", test.about, test.file, err, test.want)
		}
	}
}

// TestFramingHeaders warns of headers that a request has by itself, whatever a job says.
func TestFramingHeaders(t *testing.T) {
	spec, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: "yaml", Stdin: strings.NewReader(
		`jobs: [{http: {url: "http://h/", headers: {content-length: 3, Transfer-Encoding: chunked, X-A: b}}}]`)})
	if err != nil {
		t.Fatal(err)
	}
	defer spec.Close()
	if len(spec.Warnings) != 2 || !strings.Contains(spec.Warnings[0].Text, "content-length: it is left out") {
		t.Errorf("Warnings = %v, want one of each header that frames a request", spec.Warnings)
	}
}
