package jobspec_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// TestTemplatesAreChecked has templates that are wrong whatever the rows are: that is
// said once, and without rows too.
func TestTemplatesAreChecked(t *testing.T) {
	write(t, map[string]string{"none.csv": "a\n", "none.jsonl": "", "none.txt": "\n", "some.csv": "a\n1\n2\n"})
	for _, rows := range []string{`{"csv":"none.csv"}`, `{"jsonl":"none.jsonl"}`, `{"lines":"none.txt"}`, `{"values":[]}`, `{"csv":"some.csv"}`, `{"values":[{"a":1},{"a":2}]}`} {
		for _, test := range []struct{ fields, want string }{
			{`"id":"${item:a}","exec":{"argv":["x","${item:a}"]}`, ""},
			{`"retires":3,"exec":{"argv":["x"]}`, `command line: jobs[0].retires: unknown key: did you mean "retry"?`},
			{`"exec":{"argv":["x"]},"timeout":"30"`, `command line: jobs[0].timeout: "30": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
			{`"exec":{"argv":["x","${var:none}"]}`, `command line: jobs[0].exec.argv[1]: ${var:none}: unknown var`},
			{`"id":"x-${item:a}"`, `command line: jobs[0]: want one of http and exec`},
			{`"http":{"method":"PUT"}`, `command line: jobs[0].http: want a url`},
			{`"http":{"url":"http://h/","tls":{"cert_file":"${item:a}"}}`, `command line: jobs[0].http: want cert_file and key_file together`},
			{`"http":{"url":"http://h/","tls":{"cert_file":"${item:a}","key_file":"k"}}`, ``},
			{`"cost":7,"host":"slow","exec":{"argv":["x"]}`, `command line: jobs[0].cost: a cost of 7 is above the burst of host/slow, 1: it could never start`},
			{`"cost":7,"host":"${item:a}","exec":{"argv":["x"]}`, ""},
		} {
			_, err := jobspec.Load(jobspec.Options{Document: []byte(`{"limits":{"hosts":{"slow":{"rate":"1/s"}}},"jobs":[{"for_each":` + rows + `,` + test.fields + `}]}`)})
			if got := fmt.Sprint(err); got != cmp.Or(test.want, "<nil>") {
				t.Errorf("Load of %s with %s: %s, want %s", test.fields, rows, got, test.want)
			}
		}
	}
}

// TestWideRowsAreQuick has a shell get the fields of a row with very many.
func TestWideRowsAreQuick(t *testing.T) {
	var names, values strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&names, "name %d,", i)
		fmt.Fprintf(&values, "%d,", i)
	}
	write(t, map[string]string{"wide.csv": names.String() + "last\n" + values.String() + "x\n" + values.String() + "y\n"})
	began := time.Now()
	s, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"csv":"wide.csv"},"exec":{"shell":"echo $ITEM_LAST"}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range drain(t, s) {
		if got, want := j.Exec.Env[20_000], (jobspec.EnvVar{Name: "ITEM_LAST", Value: string("xy"[i])}); got != want {
			t.Errorf("the last variable of job %d is %v, want %v", i, got, want)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // it was half a minute
		t.Errorf("two rows of 20,001 fields took %v", took)
	}
}
