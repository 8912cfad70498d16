package jobspec_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

// rewrite returns a file of jobs that is read from any folder, none of which is
// to start before at.
func rewrite(t testing.TB, s *jobspec.Spec, jobs []*jobspec.Job, at time.Time) string {
	t.Helper()
	var b strings.Builder
	r := s.NewRewrite(&b)
	for _, j := range jobs {
		if _, err := r.Add(j, at); err != nil {
			t.Fatalf("Add(%s) = %v", j.ID, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	return b.String()
}

// absolute returns j with the paths that it has for any working folder.
func absolute(t testing.TB, j *jobspec.Job) *jobspec.Job {
	t.Helper()
	all := *j
	paths := []*string{&all.Output.Save}
	if j.HTTP != nil {
		all.HTTP = new(*j.HTTP)
		tls := &all.HTTP.TLS
		paths = append(paths, &all.HTTP.BodyFile, &tls.CAFile, &tls.CertFile, &tls.KeyFile)
	} else {
		all.Exec = new(*j.Exec)
		paths = append(paths, &all.Exec.Dir, &all.Exec.StdinFile)
	}
	for _, path := range paths {
		if *path != "" {
			*path, _ = filepath.Abs(*path)
		}
	}
	return &all
}

// sameJob compares jobs but for where they stand and when they may start.
var sameJob = cmp.Options{
	cmpopts.IgnoreFields(jobspec.Job{}, "Pos", "NotBefore"),
	cmpopts.IgnoreUnexported(jobspec.Job{}),
	cmp.Transformer("pattern", func(r *regexp.Regexp) string {
		if r == nil {
			return ""
		}
		return r.String()
	}),
	cmp.Transformer("deadline", func(w jobspec.When) time.Duration { return w.After }),
}

func TestRewriteReadsBack(t *testing.T) {
	const lines = `{"id":"a","account":1.10,"output":{"save":"out/${job:id}"},"http":{"url":"http://h/","body_file":"in.txt"}}
{"deadline":"15m","exec":{"argv":["true","\u007f\u0085\u2028\ufeff\uffff\t😀"],"env":{"A":""}}}
{"http":{"url":"http://h/","json":{"\u0000\u0085":"\u0000\u2029\\","<<":[1e400,-0]}}}`
	for _, test := range []struct {
		about string
		files map[string]string // sorted by name, "-" being standard input
		vars  map[string]string
	}{
		{"texts that JSON has other types for", map[string]string{"j.yaml": `
jobs:
- {id: true, account: 0123, host: 1.10, labels: {tls: true, insecure: false, y: no, d: 2024-01-02, json: true},
   exec: {argv: ["true", true, 1e3, .inf, "1", 12345678901234567890, ""], inherit_env: false, env: {false: true, json: 1}}}
- {id: 1, retry: {idempotent: true}, http: {url: 'http://h/', form: {json: [true, 1, x], b: ""}, tls: {insecure: true}}}
- {id: 2, http: {url: 'http://h/', json: {z: 1.10, a: [true, "true", ~, null, "null", 0123, 1e3, 12345678901234567890, {}, []]}}}
- {id: 3, http: {url: 'http://h/', json: null, method: PUT}}
- {id: 4, exec: {shell: true}, timeout: none, deadline: none}
`}, nil},
		{"every field", map[string]string{"j.yaml": `
limits:
  global: {concurrency: 3}
  coordinator: folder
  hosts: {h: {concurrency: 4, rate: 10/s, burst: 20}, "*.example.org": {concurrency: none}, "*": {rate: 0.5/s, burst: 9}}
  accounts: {"*": {concurrency: 2}}
  pools: {gpu: {concurrency: 1}, llm: {rate: 9/s, burst: 9}}
public_env: [REGION, TOKEN2]
jobs:
- id: "${env:REGION}-1"
  account: p
  pools: [gpu]
  cost: {requests: 2, llm: 3}
  priority: -3
  deadline: 15m
  not_before: 1m
  timeout: 1.5m
  retry: {attempts: 2, backoff: {initial: 1s, max: 2s, multiplier: 1.50}, on_status: [500], on_exit: [], max_wait: 0s}
  expect: {status: [2xx, 404], exit_codes: [0, 3], body_matches: "^\\w+$"}
  output: {inline: 1MiB, save: "out/${job:id}/x"}
  labels: {a: "${job:id}"}
  http: {url: "http://h/${job:id}", method: POST, follow_redirects: 3, proxy: "socks5://p:1", headers: {A: b},
    body: "$${x} ${env:TOKEN}", tls: {ca_file: ca, cert_file: c/cert, key_file: /k/key}}
- {cost: 0, exec: {argv: [./tool], dir: ., stdin_file: "in/${env:REGION}"}, deadline: 2030-01-02T03:04:05+02:00}
`}, nil},
		{"defaults, merge keys and equal jobs without an id", map[string]string{"j.yaml": `
x-a: &a {account: p, retry: {attempts: 2}}
defaults:
  http: {url: "http://h/", headers: {accept: a, X-B: b}, body: default}
  exec: {env: {A: "1", B: "2"}, dir: work}
  deadline: 2030-01-02T03:04:05Z
jobs:
- {<<: *a, http: {headers: {Accept: own}, json: [1]}}
- {http: {}, deadline: 3m}
- {http: {}}
- {exec: {shell: "exit 0", env: {B: own}}}
`}, nil},
		{"numbers and switches that are put in", map[string]string{"j.yaml": `
vars: {n: "3", on: true}
jobs:
- {for_each: {values: [4]}, id: a, priority: "${var:n}", cost: "${item:value}", retry: {idempotent: "${var:on}", attempts: "${var:n}${item:value}"}, exec: {argv: [x]}}
`}, nil},
		{"vars of files and flags", map[string]string{"j.yaml": `
vars: {base: "http://h", braces: "$${var:base} $$$${", n: 1.10, t: true}
jobs:
- {exec: {shell: 'echo "${HOME} ${var:base} $VAR_BASE $VAR_FLAG"', env: {T: "${env:TOKEN}"}}}
- {exec: {argv: [echo, "${var:braces}", "$${env:X}", "$$${a}", "$$", "${var:n}${var:t}${var:flag}"]}}
`}, map[string]string{"flag": "${var:base} $${x", "base": "http://flag"}},
		{"paths with references", map[string]string{"a ${b $${c/j.yaml": `
vars: {here: in, there: /in}
jobs:
- {exec: {argv: [x], dir: "${env:REGION}/../${var:here}", stdin_file: "${var:there}/./x"}}
- {http: {url: "http://h/", body_file: "./${job:id}/./x"}, id: x, output: {save: "/out/./${job:id}"}}
`}, nil},
		{"JSON Lines", map[string]string{"sub/j.jsonl": lines}, nil},
		{"a pipe", map[string]string{"-": lines}, nil},
		{"several files", map[string]string{
			"a/limits.yaml": "limits: {hosts: {h: {rate: 1/s}}, pools: {p: {concurrency: 1}}}\nvars: {x: one}\ndefaults: {http: {body_file: in.txt}, pools: [p]}\npublic_env: [REGION]\n",
			"b.json":        `{"limits": {"hosts": {"h": {"rate": "1/s", "concurrency": 2}}}, "public_env": ["REGION"], "jobs": [{"http": {"url": "http://h/${var:x}"}}]}`,
			"c/c.jsonl":     lines,
		}, nil},
		{"no jobs", map[string]string{"j.yaml": "jobs: []\n"}, nil},
	} {
		t.Run(test.about, func(t *testing.T) {
			o := jobspec.Options{Vars: test.vars, Env: environment, Written: true, Files: slices.Sorted(maps.Keys(test.files))}
			o.Stdin = strings.NewReader(test.files["-"])
			write(t, test.files)
			s, err := jobspec.Load(o)
			if err != nil {
				t.Fatalf("Load(%q) = %v", o.Files, err)
			}
			jobs := drain(t, s)
			var want []*jobspec.Job
			for _, j := range jobs {
				want = append(want, absolute(t, j))
			}
			at := time.Date(2030, 1, 2, 3, 4, 5, 123456789, time.UTC)
			text := rewrite(t, s, jobs, at)
			if strings.Contains(text, "tok-1234567") {
				t.Errorf("a secret is written: %s", text)
			}
			for _, name := range []string{"out/d.json", "out/d.yaml"} {
				write(t, map[string]string{name: text})
				back, err := jobspec.Load(jobspec.Options{Files: []string{name}, Env: environment, Written: true})
				if err != nil {
					t.Fatalf("Load(%s) = %v, of\n%s", name, err, text)
				}
				got := drain(t, back)
				if diff := cmp.Diff(want, got, sameJob); diff != "" {
					t.Errorf("jobs of %s (-want +got):\n%s\nof %s", name, diff, text)
				}
				for i, j := range got {
					if !j.NotBefore.At.Equal(at) || j.Deadline.Set && j.Deadline.After == 0 {
						t.Errorf("%s: job %s: not before %v, deadline %v", name, j.ID, j.NotBefore, j.Deadline)
					}
					if diff := cmp.Diff(jobs[i].Needs(nil, &s.Limits), j.Needs(nil, &back.Limits)); diff != "" {
						t.Errorf("%s: needs of %s (-want +got):\n%s", name, j.ID, diff)
					}
				}
				if back.Global != s.Global || back.Coordinator != s.Coordinator || !cmp.Equal(back.PublicEnv, s.PublicEnv, cmpopts.EquateEmpty()) {
					t.Errorf("%s: Load() = %+v, want %+v", name, back, s)
				}
				for _, key := range []limits.Key{{Kind: limits.Host, Name: "other"}, {Kind: limits.Account, Name: "x"}} {
					if got, want := back.Limits.For(key), s.Limits.For(key); got != want {
						t.Errorf("%s: limit of %v = %v, want %v", name, key, got, want)
					}
				}
				if again := rewrite(t, back, got, at); again != text {
					t.Errorf("%s: written again (-first +second):\n%s", name, cmp.Diff(text, again))
				}
			}
		})
	}
}

func TestRewriteAsTyped(t *testing.T) {
	write(t, map[string]string{"sub/j.yaml": `
limits: {hosts: {h: {rate: 10/s, concurrency: 4}}}
vars: {base: "http://h"}
defaults: {timeout: 30s, labels: {team: x}}
jobs:
- {id: a, http: {url: "${var:base}/", headers: {K: "${env:TOKEN}"}, body_file: in.txt}, deadline: 2030-01-02T03:04:05+02:00}
- {id: b, exec: {argv: [x, 1]}, deadline: 15m, not_before: 1m}
`})
	s, err := jobspec.Load(jobspec.Options{Files: []string{"sub/j.yaml"}, Env: environment, Written: true})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r := s.NewRewrite(&b)
	at := []time.Time{time.Date(2030, 1, 2, 5, 0, 0, 5e8, time.FixedZone("", 7200)), {}}
	for i, want := range []string{"2030-01-02T03:04:05+02:00", ""} {
		if dropped, err := r.Add(drainOne(t, s), at[i]); dropped != want || err != nil {
			t.Errorf("Add of job %d = %q, %v, want %q", i, dropped, err, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	folder, _ := os.Getwd()
	want := `{"version":1,"limits":{"hosts":{"h":{"rate":"10/s","concurrency":4}}},"vars":{"base":"http://h"},"public_env":[],"jobs":[
{"id":"a","timeout":"30s","labels":{"team":"x"},"http":{"url":"${var:base}/","headers":{"K":"${env:TOKEN}"},"body_file":"` + folder + `/sub/./in.txt"},"not_before":"2030-01-02T03:00:00.5Z"},
{"id":"b","timeout":"30s","labels":{"team":"x"},"exec":{"argv":["x",1]},"deadline":"15m"}
]}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// drainOne returns the next job of a source.
func drainOne(t *testing.T, s *jobspec.Spec) *jobspec.Job {
	t.Helper()
	j, err := s.Source.Next()
	if err != nil {
		t.Fatalf("Next() = %v", err)
	}
	return j
}

func TestJobsAreNotKeptUnlessToldTo(t *testing.T) {
	if j := one(t, get); j.Written != "" {
		t.Errorf("Written = %q", j.Written)
	}
}

// fullWriter takes so many pieces.
type fullWriter struct{ room int }

var errFull = errors.New("full")

func (w *fullWriter) Write(b []byte) (int, error) {
	if w.room--; w.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestRewriteReportsTheFirstError(t *testing.T) {
	write(t, map[string]string{"j.yaml": "jobs: [{id: a, " + get + "}]\n"})
	for _, test := range []struct {
		about string
		room  int
	}{{"no room for the heading", 0}, {"no room for a job", 1}, {"no room for the end", 2}} {
		s, err := jobspec.Load(jobspec.Options{Files: []string{"j.yaml"}, Written: true})
		if err != nil {
			t.Fatal(err)
		}
		r := s.NewRewrite(&fullWriter{test.room})
		_, addErr := r.Add(drainOne(t, s), time.Time{})
		if err := r.Close(); err != errFull || (addErr == nil) != (test.room > 1) {
			t.Errorf("%s: Add() = %v, Close() = %v", test.about, addErr, err)
		}
	}
}
