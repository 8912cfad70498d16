package jobspec_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// hostile are items that must stay one value wherever they are put in.
var hostile = []string{
	`"; rm -rf x; "`, "a\nb", "$(touch x)", "`touch x`", "${env:TOKEN}", "${item:value}", "$${", "'", `\`, "a b", "a&b=c#d?e/f%20",
	"\r\nX-Evil: 1", "{{.}}", "*", "-rf", "~", "é漢😀", ": {", "- x", "null", "../..", strings.Repeat("x", 100_000),
}

// rowJobs returns the jobs that a job makes of values, and of the same rows in each
// kind of file.
func rowJobs(t *testing.T, values []string, fields string) map[string][]*jobspec.Job {
	t.Helper()
	var csv, jsonl, typed strings.Builder
	csv.WriteString("value\n")
	for _, v := range values {
		fmt.Fprintf(&csv, "\"%s\"\n", strings.ReplaceAll(v, `"`, `""`))
		fmt.Fprintf(&jsonl, "{\"value\":%s}\n", quoted(v))
		fmt.Fprintf(&typed, "%s,", quoted(v))
	}
	write(t, map[string]string{"rows.csv": csv.String(), "rows.jsonl": jsonl.String()})
	all := make(map[string][]*jobspec.Job)
	for name, from := range map[string]string{"csv": `{"csv":"rows.csv"}`, "jsonl": `{"jsonl":"rows.jsonl"}`, "values": `{"values":[` + strings.TrimSuffix(typed.String(), ",") + `]}`} {
		s, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":` + from + `,` + fields + `}]}`), Env: environment})
		if err != nil {
			t.Fatalf("Load with rows of %s = %.500v", name, err)
		}
		all[name] = drain(t, s)
		s.Close()
	}
	return all
}

func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// TestHostileItems puts items that would do harm as text of a file, of a shell or of
// a URL into every place of a call, from every kind of rows.
func TestHostileItems(t *testing.T) {
	for name, jobs := range rowJobs(t, hostile, `"labels":{"l":"<${item:value}>"},"exec":{"argv":["echo","${item:value}","-${item:value}-${item:value}"],"env":{"V":"${item:value}"},"stdin":"${item:value}"}`) {
		for i, v := range hostile {
			v = asRead(name, v)
			want := &jobspec.Exec{InheritEnv: true, Argv: []string{"echo", v, "-" + v + "-" + v}, Env: []jobspec.EnvVar{{Name: "V", Value: v}}, Stdin: []byte(v)}
			if diff := cmp.Diff(want, jobs[i].Exec); diff != "" || jobs[i].Labels["l"] != "<"+v+">" {
				t.Errorf("%s, item %.50q (-want +got):\n%.2000s", name, v, diff)
			}
		}
	}
	for name, jobs := range rowJobs(t, hostile, `"exec":{"shell":"echo \"$ITEM_VALUE\"","env":{"OWN":"x"}}`) {
		for i, v := range hostile {
			v = asRead(name, v)
			want := []jobspec.EnvVar{{Name: "ITEM_VALUE", Value: v}, {Name: "OWN", Value: "x"}}
			if diff := cmp.Diff(want, jobs[i].Exec.Env); diff != "" || jobs[i].Exec.Shell != `echo "$ITEM_VALUE"` {
				t.Errorf("%s, item %.50q in a shell (-want +got):\n%.2000s", name, v, diff)
			}
		}
	}
	for name, jobs := range rowJobs(t, hostile, `"http":{"method":"POST","url":"http://h/a/${item:value}?q=${item:value}","json":{"k":["${item:value}"]}}`) {
		for i, v := range hostile {
			v = asRead(name, v)
			path, query, _ := strings.Cut(jobs[i].HTTP.URL, "?")
			const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%"
			if strings.Trim(strings.TrimPrefix(path, "http://h/a/"), safe) != "" || strings.Trim(strings.TrimPrefix(query, "q="), safe) != "" {
				t.Errorf("%s, item %.50q: URL %.100q: more than a segment and a value", name, v, jobs[i].HTTP.URL)
			}
			if want := `{"k":[` + jsonText(v) + `]}`; string(jobs[i].HTTP.Body) != want {
				t.Errorf("%s, item %.50q: body %.100q, want %.100q", name, v, jobs[i].HTTP.Body, want)
			}
		}
	}
	for name, jobs := range rowJobs(t, []string{"a=b&c", "d e"}, `"http":{"method":"POST","url":"http://h/","form":{"k":"${item:value}"}}`) {
		if got := string(jobs[0].HTTP.Body) + " " + string(jobs[1].HTTP.Body); got != "k=a%3Db%26c k=d+e" {
			t.Errorf("%s: forms %q", name, got)
		}
	}
}

// asRead returns an item as it comes out of a kind of file: in CSV a line break
// within quotes is a line feed.
func asRead(kind, item string) string {
	if kind == "csv" {
		return strings.ReplaceAll(item, "\r\n", "\n")
	}
	return item
}

// jsonText spells s as compact JSON does.
func jsonText(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}

// TestItemsWhereNoneFit has items that cannot stand where they are put, each of
// which is refused with its row.
func TestItemsWhereNoneFit(t *testing.T) {
	for _, test := range []struct{ fields, item, want string }{
		{`"id":"${item:value}","exec":{"argv":["x"]}`, "a\nb", `want no control characters (row rows.jsonl:1)`},
		{`"account":"${item:value}","exec":{"argv":["x"]}`, " a", `want no white space at the ends (row rows.jsonl:1)`},
		{`"host":"${item:value}","exec":{"argv":["x"]}`, "a b", `want a host name, such as api.example.com, gpu-box:8080 or [::1] (row rows.jsonl:1)`},
		{`"http":{"url":"${item:value}"}`, "file:///etc/passwd", `(the value is not shown, it may hold secrets) (row rows.jsonl:1)`},
		{`"http":{"url":"http://h/users/${item:value}/delete"}`, "..", `${item:value}: the item ".." cannot be part of a path (row rows.jsonl:1)`},
		{`"output":{"save":"out/${item:value}"},"http":{"url":"http://h/"}`, "", `${item:value}: the item is empty: it cannot be part of a path (row rows.jsonl:1)`},
		{`"http":{"url":"http://h/users/${item:value}"}`, ".", `${item:value}: the item "." cannot be part of a path (row rows.jsonl:1)`},
		{`"http":{"url":"http://h/users/x?q=${item:value}"}`, "..", ``},
		{`"http":{"url":"http://h/","headers":{"X":"${item:value}"}}`, "a\nb", `want a header value without line breaks`},
		{`"exec":{"argv":["x","${item:value}"]}`, "a\x00b", `${item:value}: want an item without NUL (row rows.jsonl:1)`},
		{`"priority":"${item:value}","exec":{"argv":["x"]}`, "high", `jobs[0].priority: "${item:value}": want a whole number (row rows.jsonl:1)`},
		{`"exec":{"argv":["${item:value}"]}`, "", `jobs[0].exec.argv[0]: what is put in leaves it empty (row rows.jsonl:1)`},
	} {
		write(t, map[string]string{"rows.jsonl": `{"value":` + quoted(test.item) + "}\n"})
		_, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"jsonl":"rows.jsonl"},` + test.fields + `}]}`)})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("item %q in %s: %v, want %s", test.item, test.fields, err, test.want)
		}
	}
}

// TestRows reads files of rows as other programs write them, as they are and from a
// pipe, byte by byte.
func TestRows(t *testing.T) {
	for _, test := range []struct{ name, file, text, fields, want string }{
		{"a header and rows", "r.csv", "a,b\n1,2\n3,4\n", "${item:a}-${item:b}", "1-2|3-4"},
		{"a byte mark, CRLF, blank lines, no last line break", "r.csv", "\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4", "${item:a}-${item:b}", "1-2|3-4"},
		{"quotes, commas and line breaks in fields", "r.csv", "a,b\n\"x,\"\"y\"\"\nz\",2\n", "${item:a}", "x,\"y\"\nz"},
		{"empty fields", "r.csv", "a,b\n,\n", "<${item:a}>", "<>"},
		{"tabs", "r.tsv", "a\tb\n1,5\t2\n", "${item:a}", "1,5"},
		{"only a header", "r.csv", "a,b\n", "${item:a}", ""},
		{"rows of blanks or tabs alone", "r.tsv", "a\tb\n1\t2\n\t\n \t \n\n", "<${item:a}${item:b}>", "<12>|<>|<  >"},
		{"a nameless column", "r.csv", ",a\n0,x\n1,y\n", "${item:a}", "x|y"},
		{"objects with nested values", "r.jsonl", `{"a":1.50,"b":{"c":[true,null]},"d":null,"e":"x"}`, "${item:a} ${item:b} ${item:d}${item:e}", `1.50 {"c":[true,null]} x`},
		{"objects behind a byte mark, with CRLF, a blank line and no last line break", "r.jsonl", "\xef\xbb\xbf{\"a\":1,\"b\":2}\r\n\r\n{\"a\":3,\"b\":4}", "${item:a}-${item:b}", "1-2|3-4"},
		{"lines behind a byte mark", "r.txt", "\xef\xbb\xbfa\r\nb", "${item:line}", "a|b"},
		{"lines, one blank, one with CRLF", "r.txt", "a b\r\n\n  \nc", "${item:line}", "a b|c"},
	} {
		write(t, map[string]string{test.file: test.text})
		kind := map[string]string{"r.csv": "csv", "r.tsv": "csv", "r.jsonl": "jsonl", "r.txt": "lines"}[test.file]
		for _, file := range []string{test.file, "-"} {
			if file == "-" && test.file == "r.tsv" { // it has no name to tell tabs by
				continue
			}
			s, err := jobspec.Load(jobspec.Options{
				Document: []byte(`{"jobs":[{"for_each":{"` + kind + `":"` + file + `"},"exec":{"argv":["echo","` + test.fields + `"]}}]}`),
				Stdin:    iotest.OneByteReader(strings.NewReader(test.text)),
			})
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			var got []string
			for _, j := range drain(t, s) {
				got = append(got, j.Exec.Argv[1])
			}
			if strings.Join(got, "|") != test.want {
				t.Errorf("%s, of %s: %q, want %q", test.name, file, strings.Join(got, "|"), test.want)
			}
		}
	}
}

func TestBadRows(t *testing.T) {
	for _, test := range []struct{ name, kind, text, want string }{
		{"an empty table", "csv", "", "r: an empty file: want a first row with the names of the fields"},
		{"a doubled name", "csv", "a,b,a\n", `r:1: "a": doubled name of a field`},
		{"rows of other lengths", "csv", "a,b\n1\n1,2,3\n", "r:2: 1 fields, but the first row names 2\nr:3: 3 fields, but the first row names 2"},
		{"a quote that does not end", "csv", "a,b\n1,\"2\n3,4\n", `r:3: extraneous or missing " in quoted-field`},
		{"a quote within a field", "csv", "a,b\n1,2\n1,2\" pipe\n", `r:3: bare " in non-quoted-field`},
		{"bytes that are not UTF-8", "csv", "a,b\n1,2\n1,\xff\n", `r:3:3: a byte that is not UTF-8`},
		{"a line that is not UTF-8", "lines", "a\né\xff\n", `r:2:2: a byte that is not UTF-8`},
		{"an object that is not UTF-8", "jsonl", "{\"a\":1}\n{\"a\":\"\xff\"}\n", `r:2:7: a byte that is not UTF-8`},
		{"NUL", "lines", "a\nb\x00\n", `r:2:2: a NUL byte: save the file as UTF-8 text`},
		{"a table in UTF-16", "csv", "\xfe\xff\x00a", `r:1:1: UTF-16: save the file as UTF-8`},
		{"objects in UTF-16", "jsonl", "\xff\xfe{\x00", `r:1:1: UTF-16: save the file as UTF-8`},
		{"UTF-16", "lines", "\xff\xfea\x00", `r:1:1: UTF-16: save the file as UTF-8`},
		{"a line that is no object", "jsonl", "{\"a\":1}\n[1]\n", `r:2:1: want a mapping from names to values`},
		{"a doubled name in an object", "jsonl", "{\"a\":1,\"a\":2}\n", `r:1:8: doubled key "a"`},
	} {
		write(t, map[string]string{"r": test.text})
		_, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"` + test.kind + `":"r"},"exec":{"argv":["echo"]}}]}`)})
		if diff := cmp.Diff(test.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestUnknownItems tells once of a field that no row of a table has, and of each row
// whose names are its own.
func TestUnknownItems(t *testing.T) {
	const unknown = `command line: jobs[0].exec.argv[0]: ${item:a}: unknown item: want b`
	for _, test := range []struct{ kind, text, want string }{
		{"csv", "b\n1\n2\n", unknown},
		{"jsonl", "{\"a\":1}\n{\"b\":2}\n{\"b\":3}\n", unknown + " (row r:2)\n" + unknown + " (row r:3)"},
	} {
		write(t, map[string]string{"r": test.text})
		_, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"` + test.kind + `":"r"},"exec":{"argv":["${item:a}"]}}]}`)})
		if diff := cmp.Diff(test.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.kind, diff)
		}
	}
}

// TestRowsOfStandardInput has rows that come while others run: a bad one is invalid
// and the rest goes on.
func TestRowsOfStandardInput(t *testing.T) {
	s, err := jobspec.Load(jobspec.Options{
		Document: []byte(`{"jobs":[{"id":"first","exec":{"argv":["x"]}},{"for_each":{"csv":"-"},"id":"${item:a}","exec":{"argv":["x"]}}]}`),
		Stdin:    strings.NewReader("a\nx\nx,y\nz\nx\n"),
	})
	if err != nil || s.Jobs != -1 {
		t.Fatalf("Load() = %d jobs, %v", s.Jobs, err)
	}
	var got []string
	for {
		j, err := s.Source.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, j.ID)
		}
	}
	want := []string{"first", "x", "<stdin>:3: 2 fields, but the first row names 1", "z", `<stdin>:5: command line: jobs[1].id: "x": doubled id, first at <stdin>:2; rows without an id get one each`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"csv":"-"},"exec":{"argv":["x"]}}]}`), Files: []string{"-"}, Stdin: strings.NewReader("jobs: []")})
	if err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("Load() with two readers of standard input = %v", err)
	}
}

// TestBadRowsOfPipes has each bad row of a pipe be one error, with a place that is
// its own, whatever is wrong with it.
func TestBadRowsOfPipes(t *testing.T) {
	for _, test := range []struct{ name, kind, fields, rows, want string }{
		{"an item that only some rows have", "jsonl", `"exec":{"argv":["${item:b}"]}`, "{\"b\":1}\n{\"a\":1}\n\n{\"a\":2}\n", "<stdin>:2|<stdin>:4"},
		{"an item that no row has", "csv", `"exec":{"argv":["${item:b}"]}`, "a\n1\n\"2\n3\"\n4\n", "<stdin>:2|<stdin>:3|<stdin>:5"},
		{"ids that come again", "lines", `"id":"${item:line}","exec":{"argv":["x"]}`, "a\na\nb\na\nb\n", "<stdin>:2|<stdin>:4|<stdin>:5"},
		{"files that come again", "lines", `"output":{"save":"${item:line}"},"exec":{"argv":["x"]}`, "a\na\n./a\n", "<stdin>:2|<stdin>:3"},
		{"two faults of one row", "lines", `"priority":"${item:line}","account":" ${item:line}","exec":{"argv":["x"]}`, "a\nb\n", "<stdin>:1|<stdin>:2"},
		{"rows that cannot be read", "csv", `"exec":{"argv":["x"]}`, "a\n1,2\n\xff\n\"1\"2\"3\"\n\x00\n", "<stdin>:2|<stdin>:3:1|<stdin>:4|<stdin>:5:1"},
	} {
		s, err := jobspec.Load(jobspec.Options{
			Document: []byte(`{"jobs":[{"for_each":{"` + test.kind + `":"-"},` + test.fields + `}]}`), Stdin: strings.NewReader(test.rows),
		})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []string
		for {
			_, err := s.Source.Next()
			if err == io.EOF {
				break
			}
			if bad, is := errors.AsType[*jobspec.Invalid](err); is {
				got = append(got, bad.Pos.String())
			} else if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%s: bad rows %q, want %q", test.name, got, test.want)
		}
	}
}

// TestIDsOfRows keeps ids when rows move, and tells equal rows apart.
func TestIDsOfRows(t *testing.T) {
	ids := func(rows string) (all []string) {
		for _, j := range jobsOf(t, "jobs.yaml", "jobs:\n- for_each: {values: ["+rows+"]}\n  exec: {argv: [echo, '${item:value}']}\n") {
			all = append(all, j.ID)
		}
		return all
	}
	before, after := ids("a, b, a"), ids("c, a, a, b")
	if before[0] != after[1] || before[1] != after[3] || before[2] != after[2] || before[2] != before[0]+"-2" {
		t.Errorf("ids %v, then %v", before, after)
	}
	for shell, same := range map[string]bool{"echo $ITEM_VALUE": false, "./script": false} {
		jobs := jobsOf(t, "jobs.yaml", "jobs:\n- for_each: {values: [a, b]}\n  exec: {shell: '"+shell+"'}\n")
		if (jobs[0].Hash == jobs[1].Hash) != same {
			t.Errorf("shell %q: hashes %s and %s", shell, jobs[0].Hash, jobs[1].Hash)
		}
	}
}

// TestRewriteOfRows fills items in: what is written has no for_each, and reads back
// as the same jobs.
func TestRewriteOfRows(t *testing.T) {
	write(t, map[string]string{"sub/rows.csv": "a,b\n\"${env:X} $${\",x\n\"1\n2\",y\n", "sub/tok": "tok-1234567\n", "sub/jobs.yaml": `
defaults: {exec: {shell: 'echo # ${item:a}'}}
jobs:
- id: "j-${item:b}"
  for_each: {csv: rows.csv}
  http: {url: "http://h/x?q=${item:a}&r=${item:b}", headers: {A: "Bearer ${file:tok}"}, json: {k: "${item:a}"}}
- id: "s-${item:b}"
  for_each: {csv: rows.csv}
  exec: {shell: 'echo "$ITEM_A" # ${item:a} $${', env: {T: "${file:tok}"}, stdin_file: "${item:b}", dir: "d-${item:b}"}
- id: "t-${item:b}"
  for_each: {csv: rows.csv}
  exec: {env: {shell: "${item:a}"}}
- for_each: {values: [{a: "$", b: "{env:TOKEN}"}]}
  exec: {argv: [echo, "${item:a}${item:b} ${item:a}{x} ${HOME} $${item:a}"]}
`})
	s, err := jobspec.Load(jobspec.Options{Files: []string{"sub/jobs.yaml"}, Written: true, Env: environment})
	if err != nil {
		t.Fatal(err)
	}
	jobs := drain(t, s)
	text := rewrite(t, s, jobs, time.Time{})
	if strings.Contains(text, "for_each") || strings.Contains(text, "tok-1234567") {
		t.Errorf("rewrite: %s", text)
	}
	if err := os.WriteFile("again.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := jobspec.Load(jobspec.Options{Files: []string{"again.json"}, Env: environment})
	if err != nil {
		t.Fatalf("%v, of\n%s", err, text)
	}
	want, got := jobs, drain(t, back)
	for _, j := range append(want, got...) {
		j.Written = ""
		if j.Exec != nil {
			j.Exec.Dir, j.Exec.StdinFile = base(j.Exec.Dir), base(j.Exec.StdinFile)
		}
	}
	if diff := cmp.Diff(want, got, sameJob); diff != "" {
		t.Errorf("(-want +got):\n%s\nof %s", diff, text)
	}
}

func base(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// TestFileSecrets reads secrets from files beside the job file.
func TestFileSecrets(t *testing.T) {
	write(t, map[string]string{"sub/tok": "tok-from-file\r\n", "sub/jobs.yaml": "jobs:\n- {http: {url: 'http://h/', headers: {A: 'Bearer ${file:tok}'}}}\n- {http: {url: 'http://h/', body: '${file:../sub/tok}!'}}\n"})
	s, err := jobspec.Load(jobspec.Options{Files: []string{"sub/jobs.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	jobs := drain(t, s)
	if got := jobs[0].HTTP.Headers[0].Value; got != "Bearer tok-from-file" {
		t.Errorf("header %q", got)
	}
	if got := string(jobs[1].HTTP.Body); got != "tok-from-file!" {
		t.Errorf("body %q", got)
	}
	if diff := cmp.Diff([]string{"tok-from-file"}, jobs[1].Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{"": `"tok" is empty`, "\n": `"tok" is empty`, "a\x00b": `"tok" is no text`, "\xff": `"tok" is no text`, strings.Repeat("x", 1<<20+1): `"tok" has over 1 MiB`} {
		write(t, map[string]string{"tok": text, "jobs.yaml": "jobs:\n- {http: {url: 'http://h/', body: '${file:tok}'}}\n- {id: '${file:tok}', http: {url: 'http://h/'}}\n"})
		_, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "jobs[1].id: ${file:tok}: a secret cannot stand here") {
			t.Errorf("a file of %.10q: %v, want %s", text, err, want)
		}
	}
}

// TestReferencesInNumbers has a row say what a job costs and when it may run.
func TestReferencesInNumbers(t *testing.T) {
	jobs := jobsOf(t, "jobs.yaml", `
vars: {rate: 7/s, many: "3"}
limits: {pools: {tokens: {rate: "${var:rate}", burst: 500}}, hosts: {"*": {concurrency: "${var:many}"}}}
jobs:
- for_each: {values: [{n: 120, by: 5m, pool: tokens, p: 3}]}
  cost: {tokens: "${item:n}"}
  deadline: ${item:by}
  priority: ${item:p}
  pools: ["${item:pool}"]
  exec: {argv: [x]}
`)
	if j := jobs[0]; j.PoolCost[0] != 120 || j.Deadline.After != 5*time.Minute || j.Priority != 3 {
		t.Errorf("job %+v", j)
	}
}

// TestBusyHostHidesNothing has 10,000 jobs for one host, of many accounts, first in a
// file: with room for few jobs in memory those of other hosts are there from the start.
func TestBusyHostHidesNothing(t *testing.T) {
	var b strings.Builder
	line := func(id, host, account string) {
		fmt.Fprintf(&b, "{\"id\":%q,\"host\":%q,\"account\":%q,\"exec\":{\"argv\":[\"x\"]}}\n", id, host, account)
	}
	for i := range 10_000 {
		line(fmt.Sprint("busy-", i), "busy", fmt.Sprint("a", i%5000))
	}
	line("idle-1", "idle", "a1")
	line("idle-2", "idle", "a2")
	s, err := load(t, "jobs.jsonl", b.String())
	if err != nil || s.Jobs != 10_002 {
		t.Fatalf("Load() = %d jobs, %v", s.Jobs, err)
	}
	var memory []*jobspec.Job
	at := make(map[string]int)
	next := func() {
		j, err := s.Source.Next()
		if err != nil {
			t.Fatal(err)
		}
		at[j.ID] = len(at) + 1
		memory = append(memory, j)
	}
	for range 10 {
		next()
	}
	if at["idle-1"] == 0 || at["idle-2"] == 0 {
		t.Errorf("of ten jobs in memory: %v, want all of the idle host", at)
	}
	for len(at) < 10_002 { // each that ends makes room for one
		memory[0].Done()
		memory = memory[1:]
		next()
	}
	if _, err := s.Source.Next(); err != io.EOF {
		t.Errorf("Next() behind the last = %v", err)
	}
}

// TestChangedFile has a file change between its check and its jobs.
func TestChangedFile(t *testing.T) {
	s, err := load(t, "jobs.jsonl", "{\"exec\":{\"argv\":[\"a\"]}}\n{\"exec\":{\"argv\":[\"b\"]}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("jobs.jsonl", []byte("{\"exec\":{\"argv\":[\"c\"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Source.Next(); err == nil || !strings.Contains(err.Error(), "jobs.jsonl:1: it was changed in the meantime") {
		t.Errorf("Next() = %v", err)
	}
}
