//go:build unix

package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

// hostile are items that would do something if a shell, a template, a URL, a
// header or the tool itself took them for more than a value. What they would run
// leaves a file named pwned.
var hostile = []string{
	`"; touch pwned; "`, `'; touch pwned; '`, "$(touch pwned)", "`touch pwned`", "|touch pwned", "&touch pwned&", "x\ntouch pwned\n",
	"${env:HOME}", "${item:line}", "${var:v}", "${file:/etc/passwd}", "${job:id}", "$${", "${", "$HOME", "{}", "%s%n%d", "{{.}}",
	"-rf", "--", "--help", "-", "*", "?", "~", "#", `\`, `\n`, `\0`, "%00", "%0a", "%2e%2e%2f", "a\r\nX-Evil: 1", "a\nb", "\ta", "'", `"`,
	"a b", "a&q=b", "a=b;c", "/../..", "a?b#c", "é漢😀", "a\u2028b", "\u202e", "null", "true", "0123", "1e3", ": {", "- x", "!!str x", "&a *a", "[", "}", ",",
}

// oneLine are those that a line of a file can be.
var oneLine = slices.DeleteFunc(slices.Clone(hostile), func(s string) bool { return strings.ContainsAny(s, "\r\n") })

// rowsAs spells items as the rows of a file.
var rowsAs = map[string]func(field string, items []string) string{
	"csv": func(field string, items []string) string {
		var text strings.Builder
		text.WriteString(field + ",other\n")
		for _, s := range items {
			text.WriteString(`"` + strings.ReplaceAll(s, `"`, `""`) + "\",\"${item:" + field + "}\"\n")
		}
		return text.String()
	},
	"jsonl": func(field string, items []string) string {
		var text strings.Builder
		for _, s := range items {
			json.NewEncoder(&text).Encode(map[string]string{field: s})
		}
		return text.String()
	},
	"lines": func(_ string, items []string) string { return strings.Join(items, "\n") },
}

// places are jobs into which an item is put, and what must come of it. LINE is the
// item, and BASE a server that says what it got.
var places = []struct {
	name, job string
	want      func(item string) string // of standard output or the body
}{
	{"argv", `"exec":{"argv":["sh","-c","printf '%s,%s,%s' $# \"$1\" \"$2\"","sh","LINE","<LINE>"]}`, func(s string) string { return "2," + s + ",<" + s + ">" }},
	{"shell", `"exec":{"shell":"printf %s \"$ITEM_LINE\" # LINE"}`, func(s string) string { return s }},
	{"env", `"exec":{"argv":["sh","-c","printf %s \"$V\""],"env":{"V":"LINE"}}`, func(s string) string { return s }},
	{"stdin", `"exec":{"argv":["cat"],"stdin":"LINE"}`, func(s string) string { return s }},
	{"url", `"http":{"url":"BASE/a/LINE/b?q=LINE&r=1"}`, func(s string) string {
		return told(got{Path: "/a/" + s + "/b", Query: map[string][]string{"q": {s}, "r": {"1"}}})
	}},
	{"body", `"http":{"method":"POST","url":"BASE/","body":"LINE"}`, func(s string) string { return told(got{Path: "/", Body: s}) }},
	{"json", `"http":{"method":"POST","url":"BASE/","json":{"k":["LINE"]}}`, func(s string) string { return told(got{Path: "/", JSON: map[string][]string{"k": {s}}}) }},
	{"form", `"http":{"method":"POST","url":"BASE/","form":{"k":"LINE","l":"1"}}`, func(s string) string { return told(got{Path: "/", Form: map[string][]string{"k": {s}, "l": {"1"}}}) }},
}

// got is what a server got of a request.
type got struct {
	Path                string
	Query, Form, Header map[string][]string `json:",omitempty"`
	JSON                map[string][]string `json:",omitempty"`
	Body                string              `json:",omitempty"`
}

func told(g got) string {
	if len(g.Body) > 1000 {
		g.Body = fmt.Sprintf("%x", sha256.Sum256([]byte(g.Body)))
	}
	text, _ := json.Marshal(g)
	return string(text)
}

// teller is a server that tells what it got.
func teller(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := got{Path: r.URL.Path, Query: r.URL.Query(), Header: make(map[string][]string)}
		for name, values := range r.Header {
			if strings.HasPrefix(name, "X-") {
				g.Header[name] = values
			}
		}
		body, _ := io.ReadAll(r.Body)
		switch r.Header.Get("Content-Type") {
		case "application/json":
			if err := json.Unmarshal(body, &g.JSON); err != nil {
				g.Body = err.Error()
			}
		case "application/x-www-form-urlencoded":
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.ParseForm()
			g.Form = r.PostForm
		default:
			g.Body = string(body)
		}
		io.WriteString(w, told(g))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// inFolder writes files into a folder and runs agentlimit there.
func inFolder(t *testing.T, files map[string]string, stdin string, args ...string) (dir, stdout, stderr string, code int) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("agentlimit", args...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	code = exitCodeOf(t, c)
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Errorf("agentlimit %q: an item was executed", args)
	}
	return dir, out.String(), errs.String(), code
}

// TestHostileItemsStayValues puts every such item from every kind of row into every
// place of a call: it arrives as one value, as it is.
func TestHostileItemsStayValues(t *testing.T) {
	t.Parallel()
	base := teller(t)
	for _, kind := range []string{"csv", "jsonl", "lines", "values", "csv -", "jsonl -", "lines -"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			items, field := hostile, "line"
			format, stdin := strings.CutSuffix(kind, " -")
			if format == "lines" {
				items = oneLine
			}
			files, input := make(map[string]string), ""
			from := `{"` + format + `":"rows"}`
			switch {
			case format == "values":
				values, _ := json.Marshal(items)
				from, field = `{"values":`+string(values)+`}`, "value"
			case stdin:
				from, input = `{"`+format+`":"-"}`, rowsAs[format](field, items)
			default:
				files["rows"] = rowsAs[format](field, items)
			}
			var jobs []string
			for _, place := range places {
				job := strings.NewReplacer("BASE", base, "ITEM_LINE", "ITEM_"+strings.ToUpper(field), "LINE", "${item:"+field+"}").Replace(place.job)
				jobs = append(jobs, `{"for_each":`+from+`,"labels":{"place":"`+place.name+`","item":"${item:`+field+`}"},`+job+`}`)
			}
			if !stdin { // all in one run
				jobs = []string{strings.Join(jobs, ",")}
			}
			seen := 0
			for _, some := range jobs {
				files["jobs.json"] = `{"vars":{"v":"put in twice"},"jobs":[` + some + `]}`
				dir, _, stderr, code := inFolder(t, files, input, "run", "jobs.json", "-o", "out.jsonl")
				if code != 0 {
					t.Errorf("exit code %d: %s", code, stderr)
				}
				seen += wantItems(t, format, filepath.Join(dir, "out.jsonl"))
			}
			if seen != len(items)*len(places) {
				t.Errorf("%d records, want %d", seen, len(items)*len(places))
			}
		})
	}
}

// wantItems holds records against what their items must come to, and counts them.
func wantItems(t *testing.T, format, file string) (n int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	met := make(map[string]bool)
	for r, err := range results.Read(f) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		place, item := r.Labels["place"], r.Labels["item"]
		met[place+" "+item] = true
		arrived := ""
		if r.Exec != nil {
			arrived = r.Exec.Stdout
		} else if r.HTTP != nil {
			arrived = r.HTTP.Body
		}
		for _, p := range places {
			if p.name == place && arrived != p.want(item) {
				t.Errorf("%s: item %q arrives as %q, want %q", place, item, arrived, p.want(item))
			}
		}
		known := slices.ContainsFunc(hostile, func(s string) bool {
			return s == item || format == "csv" && strings.ReplaceAll(s, "\r\n", "\n") == item
		})
		if !known {
			t.Errorf("%s: the item %q is none of the rows", place, item)
		}
	}
	if len(met) != n {
		t.Errorf("%d records of %d places and items", n, len(met))
	}
	return n
}

// TestHostileLinesOfEach takes lines as each does, ended by line breaks or NUL.
func TestHostileLinesOfEach(t *testing.T) {
	t.Parallel()
	base := teller(t)
	for _, test := range []struct {
		end   string
		items []string
		flags []string
	}{
		{"\n", oneLine, []string{"each", "-k"}},
		{"\x00", append(slices.Clone(hostile), "", " ", "\n"), []string{"each", "-k", "-0"}},
	} {
		input := strings.Join(test.items, test.end) + test.end
		_, stdout, stderr, code := inFolder(t, nil, input, append(test.flags, "--", "printf", `%s\0<%s>\0`, "{}", "-{}-{}")...)
		want := ""
		for _, s := range test.items {
			want += s + "\x00<-" + s + "-" + s + ">\x00"
		}
		if diff := cmp.Diff(want, stdout); diff != "" || code != 0 {
			t.Errorf("%q: exit code %d, %s (-want +got):\n%s", test.flags, code, stderr, diff)
		}
		_, stdout, stderr, code = inFolder(t, nil, input, append(test.flags, "--url", base+"/a/x{}/b?q={}")...)
		want = ""
		for _, s := range test.items {
			want += told(got{Path: "/a/x" + s + "/b", Query: map[string][]string{"q": {s}}})
		}
		if diff := cmp.Diff(want, stdout); diff != "" || code != 0 {
			t.Errorf("%q --url: exit code %d, %s (-want +got):\n%s", test.flags, code, stderr, diff)
		}
	}
}

// TestLargeItems has values of 1 MB arrive whole in bodies and on standard input.
func TestLargeItems(t *testing.T) {
	t.Parallel()
	base := teller(t)
	large := strings.Repeat("0123456789 \"'$(x)${env:HOME}é", 1<<20/30)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(large)))
	for _, kind := range []string{"csv", "jsonl", "lines", "values", "jsonl -"} {
		format, stdin := strings.CutSuffix(kind, " -")
		from, field := `{"`+format+`":"rows"}`, "line"
		files := make(map[string]string)
		if format == "values" {
			value, _ := json.Marshal(large)
			from, field = `{"values":[`+string(value)+`]}`, "value"
		} else {
			files["rows"] = rowsAs[format](field, []string{large})
		}
		jobs := []string{`"id":"stdin","exec":{"argv":["sha256sum"],"stdin":"LINE"}`, `"id":"body","http":{"method":"POST","url":"` + base + `/","body":"LINE"}`}
		input := ""
		if stdin {
			from, input, jobs = `{"jsonl":"-"}`, files["rows"], jobs[:1]
		}
		for i, job := range jobs {
			jobs[i] = `{"for_each":` + from + `,` + strings.ReplaceAll(job, "LINE", "${item:"+field+"}") + `}`
		}
		files["jobs.json"] = `{"jobs":[` + strings.Join(jobs, ",") + `]}`
		dir, _, stderr, code := inFolder(t, files, input, "run", "jobs.json", "-o", "out.jsonl")
		records, _ := os.ReadFile(filepath.Join(dir, "out.jsonl"))
		if n := strings.Count(string(records), hash); code != 0 || n != len(jobs) {
			t.Errorf("%s: exit code %d, %d of %d arrived whole: %s%.2000s", kind, code, n, len(jobs), stderr, records)
		}
	}
}
