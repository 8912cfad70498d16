package jobspec_test

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// readWhole reads a table with encoding/csv in one go. It reports whether a table of
// rows can be made of it, and whether that can be held against ours: each column has
// a name that a reference can have.
func readWhole(text string) (rows [][]string, valid, fair bool) {
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\xef\xbb\xbf"))).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, false, !strings.Contains(text, "\xef\xbb\xbf")
	}
	names := slices.Clone(rows[0])
	slices.Sort(names)
	unfit := func(name string) bool { return name == "" || strings.Contains(name, "}") }
	fair = len(slices.Compact(names)) == len(rows[0]) && !slices.ContainsFunc(names, unfit)
	return rows[1:], true, fair
}

// FuzzCSV holds our way of reading a table row by row, twice, against encoding/csv
// reading it whole.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n3,4\n", "\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4", "a,b\n\"x,\"\"y\"\"\nz\",2\n", "a,b\n,\n", "a\n \n\t\nx", "a\n\"\"\n\n\"\n\"\n",
		"a,b\n1,\"2\n3,4\n", "a,b\n1,2\" pipe\n", "a\r\nb\rc\r\n\r", "\n\r\na\n1\n", "\"a\n\",b\n\"\r\n\",\"\"\"\"\n", "a,b\n1\n", "a\n#x\n'y'\n", "é,\u2028\n漢,\u0085\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, valid, fair := readWhole(text)
		if !fair || !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > 50_000 {
			return
		}
		argv := []string{"echo"}
		if valid {
			head, _ := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\xef\xbb\xbf"))).Read()
			for _, name := range head {
				argv = append(argv, "${item:"+name+"}")
			}
		}
		typed, _ := json.Marshal(argv)
		write(t, map[string]string{"r.csv": text})
		s, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"csv":"r.csv"},"exec":{"argv":` + string(typed) + `}}]}`)})
		if valid != (err == nil) {
			t.Fatalf("Load with rows of %q = %v; encoding/csv takes them: %v", text, err, valid)
		}
		if err != nil {
			return
		}
		defer s.Close()
		var got [][]string
		for _, j := range drain(t, s) {
			got = append(got, j.Exec.Argv[1:])
		}
		if len(got) != len(rows) || len(rows) > 0 && !cmp.Equal(rows, got) {
			t.Fatalf("rows of %q (-want +got):\n%s", text, cmp.Diff(rows, got))
		}
	})
}

// expanded is a slow and obvious twin of what puts references in: from the left, one
// after the other. It reports whether all of them can be put in.
func expanded(typed string, values map[string]string) (string, bool) {
	begin := regexp.MustCompile(`^\$\{(env|file|var|item|job):`)
	whole := regexp.MustCompile(`^\$\{([^}]*)\}`)
	out := ""
	for typed != "" {
		switch {
		case strings.HasPrefix(typed, "$${"):
			out, typed = out+"${", typed[3:]
		case begin.MatchString(typed):
			found := whole.FindStringSubmatch(typed)
			if found == nil {
				return "", false
			}
			value, known := values[found[1]]
			if !known {
				return "", false
			}
			out, typed = out+value, typed[len(found[0]):]
		default:
			out, typed = out+typed[:1], typed[1:]
		}
	}
	return out, true
}

// FuzzReferences puts a value into a text that is typed in every place of a call: it
// is put in once, and changes nothing but that text.
func FuzzReferences(f *testing.F) {
	for _, typed := range []string{
		"${item:f}", "<${item:f}-${var:v}>", "$${item:f}", "$$${item:f}", "$$$${var:v}", "${x:-${var:v}}", "${item:f", "${env:TOKEN}${item:f}",
		"${env:}", "${env:NONE}", "${job:id}", "${job:x}", "${item:f}${", "$", "${HOME}", "${ item:f}", "${item:g}", "${item:f}{x}", "${item:f}${item:f}{env:TOKEN}", "${item:f}${env:TOKEN}",
	} {
		for _, value := range append([]string{"$", "$$", "{env:TOKEN}"}, hostile[:16]...) {
			f.Add(typed, value)
		}
	}
	f.Fuzz(func(t *testing.T, typed, value string) {
		if strings.Contains(typed, "${file:") || value == "" || !utf8.ValidString(typed+" "+value) || strings.Contains(typed+value, "\x00") || len(typed+value) > 50_000 {
			return
		}
		values := map[string]string{"item:f": value, "var:v": value, "job:id": "the-id"}
		for _, name := range []string{"TOKEN", "LONGER", "SHORT", "FOUR", "DOTTED", "NEWLINE", "LINES", "REGION", "TRICKY"} {
			values["env:"+name], _ = environment(name)
		}
		want, known := expanded(typed, values)
		doc, _ := json.Marshal(map[string]any{"jobs": []any{
			map[string]any{
				"id": "the-id", "for_each": map[string]any{"values": []any{map[string]string{"f": value}}},
				"exec": map[string]any{"argv": []string{"echo", typed, "end"}, "env": map[string]string{"E": typed}, "stdin": "<" + typed},
			},
			map[string]any{
				"id": "shell", "for_each": map[string]any{"values": []any{map[string]string{"f": value}}},
				"exec": map[string]any{"shell": "<" + typed},
			},
			map[string]any{
				"id": "json", "for_each": map[string]any{"values": []any{map[string]string{"f": "x"}, map[string]string{"f": value}}[1:]},
				"http": map[string]any{"method": "POST", "url": "http://h/", "json": map[string]any{"k": []string{strings.ReplaceAll(typed, "${job:id}", "the-id")}}},
			},
		}})
		s, err := jobspec.Load(jobspec.Options{Document: doc, Vars: map[string]string{"v": value}, Env: environment, Written: true})
		if known != (err == nil) {
			t.Fatalf("Load of %q with %q = %v; all references are known: %v", typed, value, err, known)
		}
		if err != nil {
			return
		}
		jobs := drain(t, s)
		call := &jobspec.Exec{InheritEnv: true, Argv: []string{"echo", want, "end"}, Env: []jobspec.EnvVar{{Name: "E", Value: want}}, Stdin: []byte("<" + want)}
		shell := &jobspec.Exec{InheritEnv: true, Shell: "<" + typed, Env: []jobspec.EnvVar{{Name: "VAR_V", Value: value}, {Name: "ITEM_F", Value: value}}}
		for i, want := range []*jobspec.Exec{call, shell} {
			if diff := cmp.Diff(want, jobs[i].Exec); diff != "" {
				t.Fatalf("%q with %q in %s (-want +got):\n%s", typed, value, jobs[i].ID, diff)
			}
		}
		var body map[string][]string
		if err := json.Unmarshal(jobs[2].HTTP.Body, &body); err != nil || len(body) != 1 || !slices.Equal(body["k"], []string{want}) {
			t.Fatalf("%q with %q: body %s (%v), want %q", typed, value, jobs[2].HTTP.Body, err, want)
		}
		checkRewrite(t, s, jobs)
	})
}

// TestRowsStayAsTyped has words and numbers that YAML or JSON might take for something
// else come as items.
func TestRowsStayAsTyped(t *testing.T) {
	words := []string{"no", "on", "true", "0123", "0898", "12345678901234567890", "1e3", "1_000", "2024-01-02", "1.10", ".inf", "1:30", "0x1f", "k7$USER-9", "a$$b"}
	var lines, numbers strings.Builder
	for _, word := range words {
		lines.WriteString(word + "\n")
	}
	for _, number := range []string{"12345678901234567890", "1e3", "1.10", "-0", "true"} {
		numbers.WriteString(`{"value":` + number + "}\n")
	}
	write(t, map[string]string{"rows.txt": lines.String(), "rows.csv": "value\n" + lines.String(), "rows.jsonl": numbers.String()})
	for from, want := range map[string][]string{
		"values: [" + strings.Join(words, ", ") + "]": words,
		"csv: rows.csv":     words,
		"lines: rows.txt":   words,
		"jsonl: rows.jsonl": {"12345678901234567890", "1e3", "1.10", "-0", "true"},
	} {
		field := "value"
		if strings.HasPrefix(from, "lines") {
			field = "line"
		}
		text := "jobs:\n- {for_each: {" + from + "}, id: '${item:V}', account: '${item:V}', labels: {l: '${item:V}'}, http: {url: 'http://h/', headers: {A: '${item:V}'}, json: ['${item:V}']}}\n"
		s, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Stdin: strings.NewReader(strings.ReplaceAll(text, "V", field))})
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		for i, j := range drain(t, s) {
			got := []string{j.ID, j.Account, j.Labels["l"], j.HTTP.Headers[0].Value, string(j.HTTP.Body)}
			if w := want[i]; !slices.Equal(got, []string{w, w, w, w, `["` + w + `"]`}) {
				t.Errorf("%s: %s arrives as %q", from, w, got)
			}
		}
	}
}

// TestFieldsOfRowsAreChecked has rows say what a file would be refused for: they are
// refused like it, with their place.
func TestFieldsOfRowsAreChecked(t *testing.T) {
	for _, test := range []struct{ about, field, item, want string }{
		{"a bare number", "timeout", "30", `want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"minutes and seconds", "timeout", "1:30", `want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"no time at all", "timeout", "0s", `want a duration above zero`},
		{"a negative duration", "timeout", "-5s", `want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"a time without a zone", "deadline", "2030-01-02 03:04:05", `want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z`},
		{"a word for a time", "not_before", "tomorrow", `want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z`},
		{"a cost above the bucket", "cost", "11", `a cost of 11 is above the burst of host/h, 10: it could never start`},
		{"a negative cost", "cost", "-1", `want a whole number of at least 0`},
		{"a leading zero", "priority", "010", `want a whole number`},
		{"white space at the end of an id", "id", "x ", `want no white space at the ends`},
	} {
		write(t, map[string]string{"rows.csv": "v\n\"" + test.item + "\"\n"})
		text := "limits: {hosts: {h: {rate: 1/s, burst: 10}}}\njobs:\n- {host: h, for_each: {csv: rows.csv}, " + test.field + ": '${item:v}', exec: {argv: [x]}}\n"
		_, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Stdin: strings.NewReader(text)})
		if err == nil || !strings.HasSuffix(err.Error(), test.want+" (row rows.csv:2)") || !strings.HasPrefix(err.Error(), "<stdin>:3:") {
			t.Errorf("%s: %v, want %s", test.about, err, test.want)
		}
	}
}
