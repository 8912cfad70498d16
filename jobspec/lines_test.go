package jobspec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// manyLines returns so many jobs, one a line, but for the lines that are given.
func manyLines(count int, other map[int]string) string {
	var b strings.Builder
	for i := range count {
		line, is := other[i+1]
		if !is {
			line = fmt.Sprintf(`{"id":"job-%d","exec":{"argv":["x"],"env":{"N":"%d"}}}`, i+1, i+1)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// TestErrorsOfManyLines has errors of parsing and of meaning, near and far from one
// another: they come in the order of the file, each with its place.
func TestErrorsOfManyLines(t *testing.T) {
	_, err := load(t, "jobs.jsonl", manyLines(400, map[int]string{
		10:  `{"id":"a","exec":{"argv":["x"],"argv":["y"]}}`,
		64:  `{"id":"b","exec":{"argv":["x"]},"prioritys":1}`,
		65:  `{"id":"c","exec":{"argv":["x"]`,
		66:  `{"id":"d","exec":{}}`,
		200: `{"id":"job-3","exec":{"argv":["x"]}}`,
		201: ``,
		400: `{"id":"e","exec":{"argv":["${var:none}"]}}`,
	}))
	want := `jobs.jsonl:10:32: doubled key "argv"
jobs.jsonl:64:33: prioritys: unknown key: did you mean "priority"?
jobs.jsonl:65:31: the JSON value is cut short
jobs.jsonl:66:18: exec: want argv or shell
jobs.jsonl:200:7: id: "job-3": doubled id, first at jobs.jsonl:3
jobs.jsonl:400:27: exec.argv[0]: ${var:none}: unknown var`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

// TestNobodyReadsOn loads files that are given up, or come to their end: no
// goroutine is left then, or the bubble would not end.
func TestNobodyReadsOn(t *testing.T) {
	bad := make(map[int]string)
	for i := range 5000 {
		bad[i+1] = "{"
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := load(t, "bad.jsonl", manyLines(5000, bad))
		if errs, ok := errors.AsType[jobspec.Errors](err); !ok || len(errs) != 1000 {
			t.Errorf("Load of 5000 bad lines = %d errors", len(errs))
		}
		if jobs := jobsOf(t, "good.jsonl", manyLines(130, nil)); len(jobs) != 130 || jobs[129].ID != "job-130" || string(jobs[64].Exec.Env[0].Value) != "65" {
			t.Errorf("Load of 130 lines = %d jobs", len(jobs))
		}
	})
}

// TestManyReferences puts more into a job than it may hold.
func TestManyReferences(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, argv := range []string{`"` + strings.Repeat("${var:big}", 100) + `"`, strings.TrimSuffix(strings.Repeat(`"${var:big}",`, 100), ",")} {
		write(t, map[string]string{"jobs.jsonl": `{"id":"a","exec":{"argv":["x",` + argv + `]}}`})
		_, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.jsonl"}, Vars: map[string]string{"big": big}})
		if err == nil || !strings.Contains(err.Error(), "the references of one job put in over 64 MiB") {
			t.Errorf("Load of a hundred references to 1 MiB = %v", err)
		}
	}
}
