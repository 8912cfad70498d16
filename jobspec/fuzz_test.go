package jobspec_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// check loads text from standard input and tries what must hold for any text:
// it ends, without a panic, and jobs that come out are whole and read back from a
// rewrite.
func check(t *testing.T, format, text string) {
	if len(text) > 50_000 {
		return
	}
	s, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: format, Stdin: strings.NewReader(text), Env: environment, Written: true})
	if err != nil {
		if err.Error() == "" || !utf8.ValidString(err.Error()) && utf8.ValidString(text) {
			t.Fatalf("Load(%q) = %q", text, err)
		}
		return
	}
	ids := make(map[string]bool)
	var jobs []*jobspec.Job
	for range len(text) + 1 {
		j, err := s.Source.Next()
		switch {
		case err == io.EOF:
			checkRewrite(t, s, jobs)
			return
		case errors.As(err, new(*jobspec.Invalid)):
			continue
		case err != nil:
			t.Fatalf("Next() of %q = %v", text, err)
		}
		if j.ID == "" || ids[j.ID] || (j.HTTP == nil) == (j.Exec == nil) || j.Pos.Line == 0 || j.Retry.Attempts < 1 || len(j.Pools) != len(j.PoolCost) || j.HTTP != nil && j.Host == "" {
			t.Fatalf("Next() of %q = %+v", text, j)
		}
		if j.HTTP != nil && j.HTTP.ContentType == "" && strings.Contains(string(j.HTTP.Body), "\r") && !strings.Contains(text, "\\") {
			t.Fatalf("Next() of %q: a CR in the body", text)
		}
		ids[j.ID] = true
		jobs = append(jobs, j)
	}
	t.Fatalf("Next() of %q does not end", text)
}

// checkRewrite tries that jobs read back from a rewrite as they are.
func checkRewrite(t *testing.T, s *jobspec.Spec, jobs []*jobspec.Job) {
	text := rewrite(t, s, jobs, time.Time{})
	var want []*jobspec.Job
	for _, j := range jobs {
		want = append(want, absolute(t, j))
	}
	for _, format := range []string{"json", "yaml"} {
		back, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: format, Stdin: strings.NewReader(text), Env: environment, Written: true})
		switch {
		case err != nil && format == "yaml" && (strings.Contains(text, `"":`) || len(text) > 1024):
			continue // YAML has no empty keys, and no long ones
		case err != nil && strings.Contains(err.Error(), "deep"):
			continue // what was a line, or a default, is within more than it was
		case err != nil:
			t.Fatalf("Load(%s) = %v, of\n%s", format, err, text)
		}
		if diff := cmp.Diff(want, drain(t, back), sameJob); diff != "" {
			t.Fatalf("%s: jobs of %s (-want +got):\n%s", format, text, diff)
		}
	}
}

func FuzzLoadYAML(f *testing.F) {
	for _, seed := range []string{
		laughs(), job(get), limit("rate: 1/s"), "a: &a [*a]", "- <<: *x", "jobs: [{<<: [{id: x}], exec: {shell: |-\n x\n}}]",
		"vars: {a: b}\ndefaults: {http: {url: 'http://${var:a}'}}\njobs:\n- http: {json: {a: [1, ~, '${env:TOKEN}']}}\n",
		"public_env: [REGION]\nvars: {a: $${}\ndefaults: {exec: {dir: x, env: {a: true}}}\njobs:\n- {exec: {shell: true, stdin_file: '${env:REGION}'}, id: on}\n- {http: {url: 'http://h/', form: {a: [1, true]}, tls: {insecure: true}}, output: {save: 'a/${job:id}'}}\n",
		"jobs:\n- exec: {argv: [a, '${job:id}'], env: {A: b}}\n  deadline: 2030-01-02T03:04:05Z\n  expect: {status: [2xx]}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, "yaml", text) })
}

func FuzzLoadJSONL(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","http":{"url":"http://h/"}}` + "\n" + `{"id":"a","http":{"url":"http://h/"}}`,
		"\xef\xbb\xbf\r\n" + `{"exec":{"argv":["a","${job:id}"],"env":{"A":""}},"cost":{"requests":0},"deadline":"1m"}`,
		`{"http":{"url":"http://u:p@h:81/?key=1","json":{"a":[1.0,null,true,"\u0000"]},"headers":{"A":"b"}}}`,
		strings.Repeat("[", 300), `{"a":1,"a":2}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, "jsonl", text) })
}

// lines writes a file of n jobs.
func lines(b *testing.B, n int) string {
	name := b.TempDir() + "/j.jsonl"
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := range n {
		id := strings.Repeat("0", 6) + string(rune('a'+i%26)) + "-" + strconv.Itoa(i)
		io.WriteString(f, `{"id":"`+id+`","account":"team-a","labels":{"batch":"x"},"http":{"method":"POST","url":"https://api.example.com/v1/items/`+id+`","headers":{"Authorization":"Bearer ${env:TOKEN}","Accept":"application/json"},"json":{"name":"item","n":`+strconv.Itoa(i)+`,"tags":["a","b"]}}}`+"\n")
	}
	return name
}

// BenchmarkLines reads JSON Lines twice, as a run does: to check, and to use.
func BenchmarkLines(b *testing.B) {
	name := lines(b, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	s, err := jobspec.Load(jobspec.Options{Files: []string{name}, Env: environment})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/check")
	for {
		if _, err := s.Source.Next(); err == io.EOF {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
