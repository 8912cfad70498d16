package jobspec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compile returns the part of the schema that pointer names; "" is all of it.
func compile(t *testing.T, pointer string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("jobs.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("jobs.json#" + pointer)
}

// instance returns what a file says as the values that JSON has, which is how
// editors see it.
func instance(t *testing.T, name, text string) any {
	t.Helper()
	f := newFile(name)
	parse := func() (*node, error) { return parseYAML(f, []byte(text)) }
	if filepath.Ext(name) != ".yaml" {
		parse = func() (*node, error) { return parseJSON(f, []byte(text)) }
	}
	n, err := parse()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n.value()
}

func (n *node) value() any {
	switch {
	case n.kind == mapping:
		all := make(map[string]any)
		for _, kid := range n.kids {
			all[kid.key] = kid.value()
		}
		return all
	case n.kind == list:
		all := []any{}
		for _, kid := range n.kids {
			all = append(all, kid.value())
		}
		return all
	case n.kind == null:
		return nil
	case n.kind != quoted && (n.text == "true" || n.text == "false"):
		return n.text == "true"
	case n.kind != quoted && jsonScalar.MatchString(n.text):
		return json.Number(n.text)
	}
	return n.text
}

func TestExamplesFitTheSchema(t *testing.T) {
	names, err := filepath.Glob("../examples/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no example is found: %v", err)
	}
	document, line := compile(t, ""), compile(t, "/$defs/line")
	for _, name := range append(names, starter) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]string{"prompts.jsonl", "batch.jsonl", "order.json"}, filepath.Base(name)) {
			continue // an input
		}
		schema, parts := document, []string{string(data)}
		switch filepath.Ext(name) {
		case ".jsonl":
			schema, parts = line, slices.Collect(strings.Lines(string(data)))
		case ".csv", ".txt":
			continue // an input
		}
		if name == starter { // with what is in comments there, too
			parts = append(parts, regexp.MustCompile(`(?m)^  # (- |  )`).ReplaceAllString(parts[0], "  $1"))
		}
		for _, part := range parts {
			if err := schema.Validate(instance(t, name, part)); err != nil {
				t.Errorf("%s: %v\n%s", name, err, part)
			}
		}
	}
}

// starter is the file that users start from.
const starter = "../cmd/starter.yaml"

const schemaLimits = "limits: {hosts: {h: {rate: 9/s, burst: 9}}, pools: {gpu: {concurrency: 1}, llm: {rate: 9/s, burst: 9}}}\nvars: {base: b}\n"

// TestSchemaJudgesAsTheParser gives both the same files.
func TestSchemaJudgesAsTheParser(t *testing.T) {
	const get = `http: {url: "http://h/"}`
	file := func(text string) string { return schemaLimits + text }
	job := func(fields string) string { return file("jobs:\n- {" + fields + "}\n") }
	schema := compile(t, "")
	rows := func(values string) string {
		return "jobs:\n- for_each:\n    values: " + values + "\n  exec: {argv: [x]}\n"
	}
	limit := func(fields string) string { return "limits: {hosts: {h: {" + fields + "}}}\n" }
	for _, test := range []struct {
		what, text string
		right      bool
	}{
		{"limits alone", schemaLimits, true},
		{"a place for anchors, and what is merged", "x-a: &a {timeout: 5s}\njobs: [{<<: *a, " + get + "}]\n", true},
		{"a version in quotes", "version: '1'\njobs: []\n", false},
		{"another version", "version: 2\njobs: []\n", false},
		{"a misspelt key at the top", "job: []\n", false},
		{"jobs that are no list", "jobs: {}\n", false},
		{"a document that is a list", "- a\n", false},
		{"a reference in a var", "vars: {a: '${env:PATH}'}\n", false},
		{"a literal reference in a var, and a shell's", "vars: {a: 'x $${env:PATH} ${HOME}'}\n", true},
		{"words and numbers as texts", job("account: no, id: 0123, labels: {a: true, b: 1.10}, " + get), true},
		{"numbers and switches as vars", "vars: {a: 1, b: true, c: 1.10}\n", true},
		{"a var that is empty", "vars: {a: ''}\n", false},
		{"null as a var", "vars: {a: ~}\n", false},
		{"no value as a var", "vars: {a: }\n", false},
		{"a list as a var", "vars: {a: [b]}\n", false},
		{"no vars", "vars: {}\n", true},
		{"a var in quotes that looks like null", "vars: {a: 'null'}\n", true},
		{"vars that are null", "vars:\n", false},
		{"jobs that are null", "jobs:\n", false},
		{"limits that are null", "limits:\n", false},
		{"defaults that are null", "defaults:\n", false},
		{"nothing of each", "vars: {}\nlimits: {}\ndefaults: {}\njobs: []\npublic_env: []\n", true},
		{"a variable without a name", "public_env: ['']\n", false},
		{"variables that are no secrets", "public_env: [A, B]\n", true},
		{"variables in a mapping", "public_env: {A: B}\n", false},

		{"every field of a limit lifted", limit("concurrency: none, rate: none, burst: none"), true},
		{"an entry without fields", limit(""), true},
		{"a part of a call over a time of its own", limit("rate: 0.5/1m30s"), true},
		{"a call in a day and a half", limit("rate: 1/1d12h"), true},
		{"a rate without a unit", limit("rate: 10"), false},
		{"a unit of three letters", limit("rate: 10/min"), false},
		{"a rate of zero", limit("rate: 0.0/s"), false},
		{"a negative rate", limit("rate: -1/s"), false},
		{"a concurrency of zero", limit("concurrency: 0"), false},
		{"a concurrency in quotes", limit("concurrency: '4'"), false},
		{"a burst of a half", limit("rate: 1/s, burst: 0.5"), false},
		{"an entry that is empty", "limits: {hosts: {h: }}\n", false},
		{"a misspelt limit", limit("concurency: 1"), false},
		{"a rate for all of the process", "limits: {global: {rate: 1/s}}\n", false},
		{"too much at once", "limits: {global: {concurrency: 1048577}}\n", false},
		{"an address and its port", "limits: {hosts: {'[::1]:8080': {}, '*': {}, '*.b': {}}}\n", true},
		{"a star within a pattern", "limits: {accounts: {a*: {}}}\n", false},
		{"a slash in a host's pattern", "limits: {hosts: {a/b: {}}}\n", false},
		{"a pool with a name that has a meaning", "limits: {pools: {requests: {}}}\n", false},

		{"neither http nor exec", job("id: x"), false},
		{"both of them", job(get + ", exec: {argv: [x]}"), false},
		{"a misspelt field", job("retires: 3, " + get), false},
		{"a misspelt field deep inside", job("retry: {backof: {}}, " + get), false},
		{"an empty text", job(`account: "", ` + get), false},
		{"null for a text", job("account: ~, " + get), false},
		{"a list for a text", job("account: [a], " + get), false},
		{"white space at the end of an id", job(`id: "x ", ` + get), false},
		{"a name of one letter, one with a space", job(`id: x, account: "a b", ` + get), true},
		{"a control character in an account", job(`account: "a\tb", ` + get), false},
		{"a slash in a host", job("host: a/b, " + get), false},
		{"a host that only a limit knows", job("host: GPU-box:8080, exec: {argv: [x]}"), true},
		{"a pool that is not in a list", job("pools: gpu, " + get), false},
		{"the lowest priority", job("priority: -2147483648, " + get), true},
		{"a priority beyond", job("priority: 2147483648, " + get), false},
		{"a text for a number", job(`priority: "1", ` + get), false},
		{"a part of a number", job("priority: 1.5, " + get), false},
		{"a cost that is free", job("cost: 0, " + get), true},
		{"costs by pool", job("cost: {requests: 2, llm: 0}, " + get), true},
		{"a negative cost", job("cost: -1, " + get), false},
		{"a negative cost in a pool", job("cost: {llm: -1}, " + get), false},

		{"times of all forms", job("deadline: 2030-01-02T03:04:05.5+02:00, not_before: 1.5h30m, timeout: 250µs, " + get), true},
		{"times that are lifted", job("deadline: none, not_before: none, timeout: none, retry: {max_wait: 0s}, " + get), true},
		{"a bare number", job("timeout: 30, " + get), false},
		{"a bare number in quotes", job("timeout: '30', " + get), false},
		{"no time at all", job("timeout: 0s, " + get), false},
		{"a negative duration", job("timeout: -5s, " + get), false},
		{"minutes and seconds with a colon", job("timeout: 1:30, " + get), false},
		{"a time without a zone", job("deadline: 2030-01-02T03:04:05, " + get), false},
		{"a word for a time", job("not_before: tomorrow, " + get), false},
		{"a pause that is not said how long", job("retry: {max_wait: 0}, " + get), false},

		{"all of retry", job("retry: {attempts: 1000, backoff: {initial: 1ms, max: 1d, multiplier: 1.5}, on_status: [599], on_exit: [255], idempotent: false}, " + get), true},
		{"no attempt", job("retry: {attempts: 0}, " + get), false},
		{"a multiplier below 1", job("retry: {backoff: {multiplier: 0.5}}, " + get), false},
		{"success as a reason to repeat", job("retry: {on_exit: [0]}, " + get), false},
		{"a switch that is not true or false", job("retry: {idempotent: yes}, " + get), false},
		{"statuses and classes", job("expect: {status: [2xx, 404, '301'], exit_codes: [0, 255], body_matches: ok}, " + get), true},
		{"a status that is none", job("expect: {status: [6xx]}, " + get), false},
		{"a status without a list", job("expect: {status: 200}, " + get), false},
		{"sizes with a unit", job("output: {inline: 1kB, save: x/y}, " + get), true},
		{"a size without", job("output: {inline: 0}, " + get), true},
		{"a size without end", job("output: {inline: 64XB}, " + get), false},
		{"a path that is empty", job("output: {save: ''}, " + get), false},

		{"all of a request", job(`http: {method: M-SEARCH, url: "HTTPS://h", headers: {A: 1}, form: {a: "", b: [1, yes]}, follow_redirects: 50, proxy: "socks5://p:1", tls: {ca_file: c, insecure: true}}`), true},
		{"what JSON may be", job(`http: {url: "http://h/", json: [null, {a: [1e3, ~]}]}`), true},
		{"a request whose url the defaults have", file("defaults: {" + get + "}\njobs: [{http: {method: PUT}}]\n"), true},
		{"a URL of another kind", job(`http: {url: "ftp://h"}`), false},
		{"a URL without a host", job(`http: {url: "http:///x"}`), false},
		{"a method in lower case", job(`http: {method: get, url: "http://h"}`), false},
		{"two bodies", job(`http: {url: "http://h/", body: x, json: 1}`), false},
		{"a header of two lines, and bytes", job(`http: {url: "http://h/", headers: {A: [b, 1]}, body_base64: AAE=}`), true},
		{"a line break in the second of them", job(`http: {url: "http://h/", headers: {A: [b, "c\nD: e"]}}`), false},
		{"two bodies", job(`http: {url: "http://h/", body: a, body_base64: AAE=}`), false},
		{"a header name with a space", job(`http: {url: "http://h/", headers: {"a b": c}}`), false},
		{"a line break in a header", job(`http: {url: "http://h/", headers: {A: "b\nC: d"}}`), false},
		{"too many redirects", job(`http: {url: "http://h/", follow_redirects: 51}`), false},
		{"a list in a list in a form", job(`http: {url: "http://h/", form: {a: [[1]]}}`), false},

		{"all of a command", job(`exec: {shell: "echo ${env:NONE}", dir: d, env: {A: "", B: 1}, inherit_env: false, stdin: x}`), true},
		{"arguments that are empty or numbers", job(`exec: {argv: [x, "", 1, true]}`), true},
		{"a program without a name", job(`exec: {argv: [""]}`), false},
		{"no program", job(`exec: {argv: []}`), false},
		{"a list in an argument", job(`exec: {argv: [x, [y]]}`), false},
		{"argv and shell", job("exec: {argv: [x], shell: y}"), false},
		{"a text and a file for standard input", job("exec: {argv: [x], stdin: a, stdin_file: b}"), false},
		{"a variable with an equals sign in its name", job("exec: {argv: [x], env: {A=: b}}"), false},

		{"values of all kinds as rows", rows("[a, 1, true, '', 'null', {b: c, d: '', e: [1, x], f: {g: h}}]"), true},
		{"no rows", rows("[]"), true},
		{"rows that are null", rows(""), false},
		{"rows that are a text", rows("a"), false},
		{"null as a row", rows("[~]"), false},
		{"no value as a row", rows("\n    - a\n    -"), false},
		{"null in a row", rows("[{a: null}]"), false},
		{"no value in a row", rows("[{a: }]"), false},
		{"a list as a row", rows("[[a]]"), false},
		{"a row without fields", rows("[{}]"), true},
		{"a source that is null", "jobs: [{for_each: , exec: {argv: [x]}}]\n", false},
		{"a file that is null", "jobs: [{for_each: {csv: }, exec: {argv: [x]}}]\n", false},
		{"a file without a name", "jobs: [{for_each: {csv: ''}, exec: {argv: [x]}}]\n", false},

		{"references in texts", job(`account: "${var:base}", host: "${var:base}", http: {url: "http://${var:base}/${job:id}"}`), true},
		{"a url that is one reference", "vars: {u: 'http://h/'}\njobs: [{http: {url: '${var:u}'}}]\n", true},
		{"a bad default that no job uses", "defaults: {timeout: 30}\njobs: []\n", false},
		{"any field as a default", "defaults: {account: a, http: {headers: {A: b}}, exec: {env: {A: b}}}\njobs: []\n", true},
	} {
		if err := schema.Validate(instance(t, "jobs.yaml", test.text)); (err == nil) != test.right {
			t.Errorf("%s: the schema says %v of\n%s", test.what, err, test.text)
		}
		name := filepath.Join(t.TempDir(), "jobs.yaml")
		if err := os.WriteFile(name, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Options{Files: []string{name}}); (err == nil) != test.right {
			t.Errorf("%s: Load says %v of\n%s", test.what, err, test.text)
		}
	}
}

// TestSchemaOfRows is about what stands for a field of a row.
func TestSchemaOfRows(t *testing.T) {
	const line, document = "/$defs/line", ""
	for _, test := range []struct {
		what, pointer, text string
		right               bool
	}{
		{"a line", line, `{"id": "a", "exec": {"argv": ["x"]}}`, true},
		{"a line without a call", line, `{"id": "a"}`, false},
		{"rows in a line", line, `{"for_each": {"lines": "-"}, "exec": {"argv": ["x"]}}`, false},
		{"limits in a line", line, `{"limits": {}, "exec": {"argv": ["x"]}}`, false},
		{"rows of a file", document, `{"jobs": [{"for_each": {"csv": "x.csv"}, "exec": {"argv": ["x", "${item:name}"]}}]}`, true},
		{"texts as rows, and mappings", document, `{"jobs": [{"for_each": {"values": ["a", 1, {"b": true}]}, "exec": {"argv": ["x"]}}]}`, true},
		{"no source of rows", document, `{"jobs": [{"for_each": {}, "exec": {"argv": ["x"]}}]}`, false},
		{"two sources", document, `{"jobs": [{"for_each": {"csv": "-", "lines": "x"}, "exec": {"argv": ["x"]}}]}`, false},
		{"a misspelt source", document, `{"jobs": [{"for_each": {"json": "x"}, "exec": {"argv": ["x"]}}]}`, false},
		{"rows in rows", document, `{"jobs": [{"for_each": {"values": [["a"]]}, "exec": {"argv": ["x"]}}]}`, false},
		{"a field of the row wherever there is a value", document, `{"jobs": [{"for_each": {"jsonl": "x.jsonl"}, "id": "${item:a}",
			"priority": "${item:a}", "deadline": "${item:a}", "timeout": "${item:a}s", "cost": {"llm": "${item:a}"}, "labels": {"a": "${item:a}"},
			"retry": {"attempts": "${item:a}", "on_exit": ["${item:a}"], "idempotent": "${item:a}", "backoff": {"multiplier": "${item:a}"}},
			"expect": {"status": ["${item:a}"]}, "output": {"inline": "${item:a}"}, "http": {"method": "${item:a}", "url": "${item:a}",
			"follow_redirects": "${item:a}", "proxy": "${item:a}", "tls": {"insecure": "${item:a}"}}}]}`, true},
		{"what is no reference", document, `{"jobs": [{"priority": "${a}", "exec": {"argv": ["x"]}}]}`, false},
	} {
		if err := compile(t, test.pointer).Validate(instance(t, "jobs.json", test.text)); (err == nil) != test.right {
			t.Errorf("%s: the schema says %v of\n%s", test.what, err, test.text)
		}
	}
}
