package jobspec_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

// job wraps the fields of one job into a file, on line 3.
func job(fields string) string {
	return "limits: {hosts: {slow: {rate: 10/s, burst: 10}}, accounts: {'*': {rate: 5/s, burst: 5}}, pools: {gpu: {concurrency: 1}, llm: {rate: 9/s, burst: 9}}}\njobs:\n- {" + fields + "}\n"
}

// limit wraps one entry into a file.
func limit(fields string) string { return "limits: {hosts: {h: {" + fields + "}}}\njobs: []\n" }

func TestRefused(t *testing.T) {
	for _, test := range []struct{ about, text, want string }{
		// Keys.
		{"a misspelt key", job("retires: 3, " + get), `jobs.yaml:3:4: jobs[0].retires: unknown key: did you mean "retry"?`},
		{"a misspelt key deep inside", job(get + ", retry: {backof: {}}"), `jobs.yaml:3:38: jobs[0].retry.backof: unknown key: did you mean "backoff"?`},
		{"a key from nowhere", job(get + ", output: {zzz: 1}"), `jobs.yaml:3:39: jobs[0].output.zzz: unknown key: want inline, save`},
		{"an unknown key at the top", "job: []\n", `jobs.yaml:1:1: job: unknown key: did you mean "jobs"?`},
		{"rows of a file that is not there", job("for_each: {csv: x}, " + get), `jobs.yaml:3:20: jobs[0].for_each.csv: open x: no such file or directory`},
		{"rows of a kind that is misspelt", job("for_each: {cvs: x}, " + get), `jobs.yaml:3:15: jobs[0].for_each.cvs: unknown key: want csv, jsonl, lines, values`},
		{"rows with a doubled name", job("for_each: {values: [{a: 1, a: 2}]}, " + get), `jobs.yaml:3:31: "a": doubled key, first on line 3`},
		{"a URL, which may hold a password, for a host", job("host: 'http://u:PW3@h', " + get), `jobs.yaml:3:10: jobs[0].host: a URL (it is not shown, it may hold secrets): want a host name, such as api.example.com, gpu-box:8080 or [::1]`},
		{"a % that begins no escape", job(`http: {url: "http://h/50%zz"}`), `jobs.yaml:3:16: jobs[0].http.url: want %25 for a % that begins no escape (the value is not shown, it may hold secrets)`},
		{"rows of nowhere", job("for_each: {}, " + get), `jobs.yaml:3:14: jobs[0].for_each: a mapping: want one of csv, jsonl, lines, values`},
		{"rows of two places", job("for_each: {values: [a], lines: x}, " + get), `jobs.yaml:3:28: jobs[0].for_each.lines: want one of csv, jsonl, lines, values`},
		{"rows that are a list of lists", job("for_each: {values: [[a]]}, " + get), `jobs.yaml:3:24: want a mapping from names to values`},
		{"rows for all jobs", "defaults: {for_each: {values: [a]}}\njobs: []\n", `jobs.yaml:1:12: defaults.for_each: it belongs to a job of a YAML or JSON document`},
		{"a field that the only row has not", job("for_each: {values: [{path: a}]}, exec: {argv: [echo, '${item:pth}']}"), `jobs.yaml:3:57: jobs[0].exec.argv[1]: ${item:pth}: unknown item: did you mean "path"? (row jobs.yaml:3:24)`},
		{"a field that one row has not", job("for_each: {values: [{path: a}, {pth: b}]}, exec: {argv: [echo, '${item:path}']}"), `jobs.yaml:3:67: jobs[0].exec.argv[1]: ${item:path}: unknown item: did you mean "pth"? (row jobs.yaml:3:35)`},
		{"two rows with one id", job("for_each: {values: [a, b, a]}, id: 'x-${item:value}', " + get), `jobs.yaml:3:39: jobs[0].id: "x-a": doubled id, first at jobs.yaml:3; rows without an id get one each (row jobs.yaml:3:30)`},
		{"an account that comes out empty", job("for_each: {values: ['']}, account: '${item:value}', " + get), `jobs.yaml:3:39: jobs[0].account: what is put in leaves it empty (row jobs.yaml:3:24)`},
		{"an item that would lead a path elsewhere", job("for_each: {values: [a/b]}, output: {save: 'out/${item:value}'}, " + get), `jobs.yaml:3:46: jobs[0].output.save: ${item:value}: the item "a/b" cannot be part of a path (row jobs.yaml:3:24)`},
		{"fields that would be one variable", job("for_each: {values: [{a-b: 1, a_b: 2}]}, exec: {shell: x}"), `jobs.yaml:3:58: jobs[0].exec.shell: "a-b" and "a_b" would both be the variable ITEM_A_B (row jobs.yaml:3:24)`},
		{"a doubled key", "jobs:\n- account: a\n  http: {url: 'http://h'}\n  account: b\n", `jobs.yaml:4:3: "account": doubled key, first on line 2`},
		{"a doubled header, whatever its case", job(`http: {url: "http://h/", headers: {Accept: a, accept: b}}`), `jobs.yaml:3:50: jobs[0].http.headers.accept: doubled key`},
		{"a doubled merge key", "jobs:\n- &a {id: x}\n- <<: *a\n  <<: *a\n", `jobs.yaml:4:3: "<<": doubled key, first on line 3`},
		{"a key that is null", "jobs:\n- ~: x\n", `jobs.yaml:2:3: ~ as a key: put it in quotes`},
		{"a key that is empty", "jobs:\n- '': x\n", `jobs.yaml:2:3: an empty key: want a name`},
		{"a key that is a list", "? [a]\n: b\n", `jobs.yaml:1:3: a list or mapping as a key: want a name`},
		{"neither http nor exec", job("id: x"), `jobs.yaml:3:3: jobs[0]: want one of http and exec`},
		{"both http and exec", job(get + ", exec: {argv: [x]}"), `jobs.yaml:3:3: jobs[0]: want one of http and exec`},
		{"two bodies", job(`http: {url: "http://h/", body: x, json: 1}`), `jobs.yaml:3:38: jobs[0].http.json: want one of body, body_base64, json, form, body_file`},
		{"bytes that are not in base64", job(`http: {url: "http://h/", body_base64: "A-E="}`), `jobs.yaml:3:42: jobs[0].http.body_base64: want bytes in base64 (RFC 4648, section 4)`},
		{"argv and shell", job(`exec: {argv: [x], shell: y}`), `jobs.yaml:3:22: jobs[0].exec.shell: want one of argv, shell`},
		{"no url", job("http: {}"), `jobs.yaml:3:10: jobs[0].http: want a url`},
		{"no command", job("exec: {}"), `jobs.yaml:3:10: jobs[0].exec: want argv or shell`},

		// Types.
		{"jobs that are no list", "jobs: {}\n", `jobs.yaml:1:7: jobs: a mapping: want a list`},
		{"a job that is no mapping", "jobs: [x]\n", `jobs.yaml:1:8: jobs[0]: "x": want a mapping of id, host, account, pools, priority, deadline, not_before, timeout, cost, retry, expect, output, labels, http, exec, for_each`},
		{"null for a text", job("account: ~, " + get), `jobs.yaml:3:13: jobs[0].account: ~ is no text: put it in quotes`},
		{"nothing for a text", "jobs:\n- account:\n  http: {url: 'http://h'}\n", `jobs.yaml:2:11: jobs[0].account: no value: want a text`},
		{"an empty text", job(`account: "", ` + get), `jobs.yaml:3:13: jobs[0].account: an empty text: leave the key out`},
		{"a list for a text", job("account: [a], " + get), `jobs.yaml:3:13: jobs[0].account: a list: want a text`},
		{"a text for a number", job(`priority: "1", ` + get), `jobs.yaml:3:14: jobs[0].priority: "1": want a whole number`},
		{"a number with an underscore", job(`priority: 1_000, ` + get), `jobs.yaml:3:14: jobs[0].priority: "1_000": want a whole number`},
		{"a number with a leading zero", job(`priority: 010, ` + get), `jobs.yaml:3:14: jobs[0].priority: "010": want a whole number`},
		{"a part of a number", job(`priority: 1.5, ` + get), `jobs.yaml:3:14: jobs[0].priority: "1.5": want a whole number`},
		{"a number out of range", job(`retry: {attempts: 0}, ` + get), `jobs.yaml:3:22: jobs[0].retry.attempts: "0": want a whole number from 1 to 1000`},
		{"a switch that is not true or false", job(`retry: {idempotent: yes}, ` + get), `jobs.yaml:3:24: jobs[0].retry.idempotent: "yes": want true or false`},
		{"a multiplier below 1", job(`retry: {backoff: {multiplier: 0.5}}, ` + get), `jobs.yaml:3:34: jobs[0].retry.backoff.multiplier: "0.5": want a number from 1 to 1000`},
		{"more than a record may hold", job(`output: {inline: 9MiB}, ` + get), `jobs.yaml:3:21: jobs[0].output.inline: "9MiB": want up to 8MiB: output.save takes more`},
		{"a size without end", job(`output: {inline: 64XB}, ` + get), `jobs.yaml:3:21: jobs[0].output.inline: "64XB": want a size, such as 64KiB, 1MB or a number of bytes`},
		{"a status that is none", job(`expect: {status: [6xx]}, ` + get), `jobs.yaml:3:22: jobs[0].expect.status[0]: "6xx": want a status from 100 to 599 or a class, such as 2xx`},
		{"a broken pattern", job(`expect: {body_matches: "("}, ` + get), `jobs.yaml:3:27: jobs[0].expect.body_matches: "(": want a regular expression: missing closing ): ` + "`(`"},
		{"another version", "version: 2\njobs: []\n", `jobs.yaml:1:10: version: "2": want 1`},
		{"an empty file", "# nothing\n", `jobs.yaml: an empty file: want jobs (a stream that may be empty needs the format jsonl)`},
		{"a file that is a list", "- a\n", `jobs.yaml:1:1: a list: want a mapping of version, vars, public_env, limits, defaults, jobs`},

		// Names.
		{"white space at the end of an id", job(`id: "x ", ` + get), `jobs.yaml:3:8: jobs[0].id: "x ": want no white space at the ends`},
		{"a control character in an account", job(`account: "a\tb", ` + get), `jobs.yaml:3:13: jobs[0].account: "a\tb": want no control characters`},
		{"a slash in a host", job(`host: a/b, ` + get), `jobs.yaml:3:10: jobs[0].host: "a/b": want a host name, such as api.example.com, gpu-box:8080 or [::1]`},
		{"an id as part of a path", job(`id: a/b, output: {save: "out/${job:id}"}, ` + get), `jobs.yaml:3:28: jobs[0].output.save: ${job:id}: the id "a/b" cannot be part of a path`},

		// Limits.
		{"a rate without a unit", limit("rate: 10"), `jobs.yaml:1:28: limits.hosts.h.rate: "10": want N/unit, such as 10/s, 600/m or 5/15s`},
		{"an unknown unit", limit("rate: 10/fortnight"), `jobs.yaml:1:28: limits.hosts.h.rate: "10/fortnight": want N/unit, such as 10/s, 600/m or 5/15s`},
		{"a unit of three letters", limit("rate: 10/min"), `jobs.yaml:1:28: limits.hosts.h.rate: "10/min": want N/unit, such as 10/s, 600/m or 5/15s`},
		{"a rate in words", limit("rate: 10 per second"), `jobs.yaml:1:28: limits.hosts.h.rate: "10 per second": want N/unit, such as 10/s, 600/m or 5/15s`},
		{"a rate of zero", limit("rate: 0/s"), `jobs.yaml:1:28: limits.hosts.h.rate: "0/s": a rate is above zero; want N/unit, such as 10/s, 600/m or 5/15s`},
		{"a negative rate", limit("rate: -1/s"), `jobs.yaml:1:28: limits.hosts.h.rate: "-1/s": want N/unit, such as 10/s, 600/m or 5/15s`},
		{"a concurrency of zero", limit("concurrency: 0"), `jobs.yaml:1:35: limits.hosts.h.concurrency: "0": want a whole number of at least 1`},
		{"a burst of zero", limit("rate: 1/s, burst: 0"), `jobs.yaml:1:40: limits.hosts.h.burst: "0": want a whole number of at least 1`},
		{"a burst without a rate", limit("burst: 5"), `jobs.yaml:1:29: limits.hosts.h.burst: a burst without a rate limits nothing`},
		{"a null entry", "limits: {hosts: {h: }}\n", `jobs.yaml:1:21: limits.hosts.h: no value: want a mapping of concurrency, rate, burst`},
		{"a rate for all of the process", "limits: {global: {rate: 1/s}}\n", `jobs.yaml:1:19: limits.global.rate: unknown key: want concurrency`},
		{"a star within a pattern", "limits: {hosts: {a*: {}}}\n", `jobs.yaml:1:18: limits.hosts.a*: "a*": want * only at the start`},
		{"a port that keys never have", "limits: {hosts: {'a:443': {}}}\n", `jobs.yaml:1:18: limits.hosts.a:443: "a:443": leave out :80 and :443: a host's key has a port only where it is not the scheme's default`},
		{"two spellings of one host", "limits: {hosts: {a.b: {}, A.B.: {}}}\n", `jobs.yaml:1:27: limits.hosts.A.B.: "A.B." stands for "a.b", which has an entry`},
		{"a pool with a name that has a meaning", "limits: {pools: {requests: {}}}\n", `jobs.yaml:1:18: limits.pools.requests: want another name: in a job's cost, requests is the cost for its host and account`},
		{"a bucket that cannot be counted", limit("rate: 1/365d, burst: 99999999999"), `jobs.yaml:1:21: limits.hosts.h: round the rate or lower the burst: the bucket cannot be counted exactly`},
		{"an unknown pool", job("pools: [gpus], " + get), `jobs.yaml:3:12: jobs[0].pools[0]: unknown pool "gpus": did you mean "gpu"?`},
		{"a cost for an unknown pool", job("cost: {lm: 1}, " + get), `jobs.yaml:3:15: jobs[0].cost.lm: unknown pool "lm": did you mean "llm"?`},
		{"a negative cost", job("cost: -1, " + get), `jobs.yaml:3:10: jobs[0].cost: "-1": want a whole number of at least 0`},
		{"a cost above the host's burst", job("host: slow, cost: 11, " + get), `jobs.yaml:3:22: jobs[0].cost: a cost of 11 is above the burst of host/slow, 10: it could never start`},
		{"a cost above a pool's burst", job("cost: {llm: 10}, " + get), `jobs.yaml:3:10: jobs[0].cost: a cost of 10 is above the burst of pool/llm, 9: it could never start`},
		{"a cost above the burst of a wildcard", job("account: any, cost: 6, " + get), `jobs.yaml:3:24: jobs[0].cost: a cost of 6 is above the burst of account/any, 5: it could never start`},

		// Times.
		{"a bare number", job("timeout: 30, " + get), `jobs.yaml:3:13: jobs[0].timeout: "30": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"a bare number in quotes", job(`timeout: "30", ` + get), `jobs.yaml:3:13: jobs[0].timeout: "30": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"minutes and seconds with a colon", job("timeout: 1:30, " + get), `jobs.yaml:3:13: jobs[0].timeout: "1:30": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"a bare zero", job("timeout: 0, " + get), `jobs.yaml:3:13: jobs[0].timeout: "0": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"zero seconds", job("timeout: 0s, " + get), `jobs.yaml:3:13: jobs[0].timeout: "0s": want a duration above zero`},
		{"a negative duration", job("timeout: -5s, " + get), `jobs.yaml:3:13: jobs[0].timeout: "-5s": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"a time without a zone", job("deadline: 2030-01-02 03:04:05, " + get), `jobs.yaml:3:14: jobs[0].deadline: "2030-01-02 03:04:05": want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z`},
		{"a long text is cut", job("timeout: " + strings.Repeat("é", 100) + ", " + get), `jobs.yaml:3:13: jobs[0].timeout: "` + strings.Repeat("é", 40) + `…": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},
		{"a word for a time", job("not_before: tomorrow, " + get), `jobs.yaml:3:16: jobs[0].not_before: "tomorrow": want a duration above zero, such as 15m, or a time with its zone, such as 2030-01-02T03:04:05Z`},
		{"a backoff whose end is before its start", job("retry: {backoff: {max: 1ms}}, " + get), `jobs.yaml:3:27: jobs[0].retry.backoff.max: "1ms": want at least initial`},

		// Requests and commands.
		{"a URL of another kind", job(`http: {url: "h/x"}`), `jobs.yaml:3:16: jobs[0].http.url: want a URL that begins with http:// or https:// and a host (the value is not shown, it may hold secrets)`},
		{"a URL with a bad port is not quoted", job(`http: {url: "http://u:PW3@127.0.0.1:9o01/"}`), `jobs.yaml:3:16: jobs[0].http.url: want a URL that begins with http:// or https:// and a host (the value is not shown, it may hold secrets)`},
		{"a port out of range", job(`http: {url: "http://h:99999/"}`), `jobs.yaml:3:16: jobs[0].http.url: want a port between 1 and 65535`},
		{"a method in lower case", job(`http: {method: get, url: "http://h/"}`), `jobs.yaml:3:19: jobs[0].http.method: "get": want a method in upper case, such as GET`},
		{"a header name with a space", job(`http: {url: "http://h/", headers: {"a b": c}}`), `jobs.yaml:3:39: jobs[0].http.headers.a b: "a b": want a header name, such as Accept`},
		{"a line break in a header", job(`http: {url: "http://h/", headers: {A: "b\r\nC: d"}}`), `jobs.yaml:3:42: jobs[0].http.headers.A: want a header value without line breaks and control characters (the value is not shown, it may be a secret)`},
		{"a value left out of json", job(`http: {url: "http://h/", json: {a: }}`), `jobs.yaml:3:39: jobs[0].http.json.a: no value: want null or ""`},
		{"a certificate without its key", job(`http: {url: "http://h/", tls: {cert_file: c}}`), `jobs.yaml:3:10: jobs[0].http: want cert_file and key_file together`},
		{"an empty argv", job(`exec: {argv: []}`), `jobs.yaml:3:17: jobs[0].exec.argv: want a program and its arguments`},
		{"NUL in an argument", job(`exec: {argv: [a, "b\0"]}`), `jobs.yaml:3:21: jobs[0].exec.argv[1]: want a text without NUL`},

		// References.
		{"a variable that is not set", job(`http: {url: "http://h/${env:NONE}"}`), `jobs.yaml:3:16: jobs[0].http.url: ${env:NONE}: the environment variable NONE is not set`},
		{"a variable that is empty", job(`http: {url: "http://h/${env:EMPTY}"}`), `jobs.yaml:3:16: jobs[0].http.url: ${env:EMPTY}: the environment variable EMPTY is empty`},
		{"a secret that ends in a line break, in a header", job(`http: {url: "http://h/", headers: {A: "${env:NEWLINE}"}}`), `jobs.yaml:3:42: jobs[0].http.headers.A: want a header value without line breaks and control characters (the value is not shown, it may be a secret)`},
		{"a secret of two lines, in a header", job(`http: {url: "http://h/", headers: {A: "${env:LINES}"}}`), `jobs.yaml:3:42: jobs[0].http.headers.A: want a header value without line breaks and control characters (the value is not shown, it may be a secret)`},
		{"a file reference", job(`exec: {argv: [echo, "${file:x}"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${file:x}: open x: no such file or directory`},
		{"an item reference", job(`exec: {argv: [echo, "${item:x}"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${item:x}: no for_each: there is no item`},
		{"something of a job that there is not", job(`exec: {argv: [echo, "${job:other}"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${job:other}: unknown reference: want ${env:NAME}, ${file:PATH}, ${var:NAME}, ${item:FIELD} or ${job:id}; $${ is a literal ${`},
		{"a reference without a name", job(`exec: {argv: [echo, "${env:}"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${env:}: unknown reference: want ${env:NAME}, ${file:PATH}, ${var:NAME}, ${item:FIELD} or ${job:id}; $${ is a literal ${`},
		{"a reference within what is none", job(`exec: {argv: [echo, "${x:-${env:NONE}}"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${env:NONE}: the environment variable NONE is not set`},
		{"two jobs that save into one file", "jobs:\n- {output: {save: out/x}, " + get + "}\n- {output: {save: './out//${job:id}'}, id: x, " + get + "}\n", `jobs.yaml:3:19: jobs[1].output.save: "out/x": doubled file, first at jobs.yaml:2`},
		{"two jobs with one id and one file", "jobs:\n- {id: a, output: {save: x}, " + get + "}\n- {id: a, output: {save: x}, " + get + "}\n", "jobs.yaml:3:8: jobs[1].id: \"a\": doubled id, first at jobs.yaml:2\njobs.yaml:3:26: jobs[1].output.save: \"x\": doubled file, first at jobs.yaml:2"},
		{"a file to save into for all jobs", "defaults: {output: {save: out}}\njobs:\n- {" + get + "}\n- {" + get + "}\n", `jobs.yaml:4:3: jobs[1]: "out": doubled file, first at jobs.yaml:3`},
		{"a reference without an end", job(`exec: {argv: [echo, "${env:TOKEN"]}`), `jobs.yaml:3:24: jobs[0].exec.argv[1]: ${env:TOKEN}: want a closing }`},
		{"an unknown var", "vars: {base: x}\njobs: [{exec: {argv: ['${var:bas}']}}]\n", `jobs.yaml:2:23: jobs[0].exec.argv[0]: ${var:bas}: unknown var: did you mean "base"?`},
		{"a secret in a name", job(`account: "${env:TOKEN}", ` + get), `jobs.yaml:3:13: jobs[0].account: ${env:TOKEN}: a secret cannot stand here: name TOKEN in public_env if it is none`},
		{"an id made of itself", job(`id: "${job:id}", ` + get), `jobs.yaml:3:8: jobs[0].id: ${job:id}: a job's id cannot stand here`},
		{"a reference in a var", "vars: {a: '${env:TOKEN}'}\njobs: []\n", `jobs.yaml:1:11: vars.a: ${env:TOKEN}: want plain text: put references where the var is used`},
		{"two vars with one variable", "vars: {a-b: x, a.b: y}\njobs: []\n", `jobs.yaml:1:21: vars.a.b: "a-b" and "a.b" would both be the variable VAR_A_B`},

		{"vars that are a list", "vars: []\njobs: []\n", `jobs.yaml:1:7: vars: a list: want a mapping from names to values`},

		// Defaults.
		{"a bad default, though no job uses it", "defaults: {timeout: 30, http: {methd: X}}\njobs: []\n",
			"jobs.yaml:1:21: defaults.timeout: \"30\": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d\njobs.yaml:1:32: defaults.http.methd: unknown key: did you mean \"method\"?"},
		{"a bad default is reported once", "defaults: {timeout: 30}\njobs: [{" + get + "}, {" + get + "}]\n", `jobs.yaml:1:21: defaults.timeout: "30": want a duration with a unit, such as 30s, 1.5m, 1h30m or 1d`},

		// The text itself.
		{"a tab as indentation", "jobs:\n- id: x\n\thttp: {}\n", `jobs.yaml:3:1: a tab in the indentation: indent with spaces`},
		{"a tab behind spaces", "jobs:\n  - id: x\n  \t http: {}\n", `jobs.yaml:3:3: a tab in the indentation: indent with spaces`},
		{"an unknown tag", "jobs:\n- account: !secret k\n", `jobs.yaml:2:12: unknown tag "!secret"`},
		{"a second document", "jobs: []\n---\njobs: []\n", `jobs.yaml:2:1: a second document: want one a file`},
		{"broken YAML", "jobs: [\n", `jobs.yaml:1: did not find expected node content`},
		{"an alias from nowhere", "jobs: *x\n", `jobs.yaml: unknown anchor 'x' referenced`},
		{"a merge of a text", "jobs: [{<<: x}]\n", `jobs.yaml:1:13: want a mapping, or a list of mappings, to merge`},
		{"NUL", "jobs:\n- id: \x00\n", `jobs.yaml:2:7: a NUL byte: save the file as UTF-8 text`},
		{"a byte that is not UTF-8", "jobs:\n- id: é\xff\n", `jobs.yaml:2:8: a byte that is not UTF-8`},
		{"UTF-16", "\xff\xfej\x00o\x00", `jobs.yaml:1:1: UTF-16: save the file as UTF-8`},
	} {
		_, err := load(t, "jobs.yaml", test.text)
		if diff := cmp.Diff(test.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s: Load of\n%s(-want +got):\n%s", test.about, test.text, diff)
		}
		if err != nil && !errors.As(err, new(jobspec.Errors)) {
			t.Errorf("%s: Load() = %T, want Errors", test.about, err)
		}
	}
}

func TestRefusedJSON(t *testing.T) {
	for _, test := range []struct{ about, name, text, want string }{
		{"a doubled key", "j.jsonl", `{"http":{"url":"http://h/"},"account":"a","account":"b"}`, `j.jsonl:1:43: doubled key "account"`},
		{"a doubled key in a document", "j.json", "{\n \"jobs\": [],\n \"jobs\": []}", `j.json:3:2: doubled key "jobs"`},
		{"a boolean for a text", "j.json", `{"jobs":[{"account":true,"http":{"url":"http://h/"}}]}`, `j.json:1:21: jobs[0].account: true: want a text: put it in quotes`},
		{"null for a text", "j.jsonl", `{"account":null,"http":{"url":"http://h/"}}`, `j.jsonl:1:12: account: null is no text: put it in quotes`},
		{"YAML in a JSON file", "j.json", "jobs: []\n", `j.json:1:1: invalid character 'j' at start of value`},
		{"a comment", "j.json", "{} // x", `j.json:1:4: invalid character '/' at start of value`},
		{"two values on a line", "j.jsonl", `{} {}`, `j.jsonl:1:4: more than one value`},
		{"a line that is no object", "j.jsonl", "\n[1]\n", `j.jsonl:2:1: a list: want a mapping of id, host, account, pools, priority, deadline, not_before, timeout, cost, retry, expect, output, labels, http, exec, for_each`},
		{"limits in a line", "j.jsonl", `{"limits":{},"http":{"url":"http://h/"}}`, `j.jsonl:1:2: limits: unknown key`},
		{"a byte that is not UTF-8", "j.jsonl", "\n{\"id\":\"\xff\"}", `j.jsonl:2:8: a byte that is not UTF-8`},
		{"UTF-16", "j.jsonl", "\xfe\xff\x00{", `j.jsonl:1:1: UTF-16: save the file as UTF-8`},
		{"a value cut short", "j.json", `{"jobs":[{`, `j.json:1:11: the JSON value is cut short`},
		{"deep nesting", "j.json", `{"jobs":` + strings.Repeat("[", 20_000), `j.json:1:108: nested more than 100 deep`},
		{"an empty document", "j.json", "", `j.json:1:1: the JSON value is cut short`},
	} {
		_, err := load(t, test.name, test.text)
		if diff := cmp.Diff(test.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s: Load of %q (-want +got):\n%s", test.about, test.text, diff)
		}
	}
}

func TestErrorsAreCountedBehindTen(t *testing.T) {
	_, err := load(t, "jobs.yaml", "jobs:\n"+strings.Repeat("- {}\n", 12))
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 11 || lines[9] != "jobs.yaml:11:3: jobs[9]: want one of http and exec" || lines[10] != "and 2 more" {
		t.Errorf("Load() = %v", err)
	}
}

func TestFilesMustAgree(t *testing.T) {
	write(t, map[string]string{
		"a.yaml":  "limits: {hosts: {h: {rate: 1/s}}}\nvars: {x: '1'}\njobs: [{id: x, " + get + "}]\n",
		"b.yaml":  "limits: {hosts: {h: {rate: 2/s}}}\nvars: {x: '2'}\n",
		"c.jsonl": "\n" + `{"id":"x","http":{"url":"http://h/2"}}`,
	})
	for _, test := range []struct{ about, files, want string }{
		{"a limit and a var that differ", "a.yaml b.yaml", "b.yaml:1:28: limits.hosts.h.rate: differs from a.yaml:1:28\nb.yaml:2:11: vars.x: differs from a.yaml:2:11"},
		{"an id in two files", "a.yaml c.jsonl", `c.jsonl:2:7: id: "x": doubled id, first at a.yaml:3`},
	} {
		_, err := jobspec.Load(jobspec.Options{Files: strings.Fields(test.files)})
		if diff := cmp.Diff(test.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s: Load(%s) (-want +got):\n%s", test.about, test.files, diff)
		}
	}
}

func TestWarnings(t *testing.T) {
	s, err := load(t, "jobs.yaml", "limits: {hosts: {h: {rate: 500/s, burst: 2}}}\njobs:\n- http: {url: 'http://h/${env:SHORT}'}\n- http: {url: 'http://h/2/${env:SHORT}'}\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range s.Warnings {
		got = append(got, w.Error())
	}
	want := []string{
		"jobs.yaml:1:42: limits.hosts.h.burst: a burst below 10 cannot hold 500/s on real timers",
		"jobs.yaml:3:15: jobs[0].http.url: the secret SHORT has under 8 bytes: it is not searched for in bodies",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Warnings (-want +got):\n%s", diff)
	}
}

// laughs is nine anchors, each a list of nine references to the one before.
func laughs() string {
	var text strings.Builder
	text.WriteString("x-a0: &a0 x\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&text, "x-a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return text.String() + "jobs:\n- http: {url: 'http://h/', json: *a9}\n"
}

func TestSmallFilesCannotEatTheMachine(t *testing.T) {
	var merges strings.Builder
	merges.WriteString("x-a: &a {")
	for i := range 5000 {
		fmt.Fprintf(&merges, "k%d: 1, ", i)
	}
	merges.WriteString("}\nx-b:\n" + strings.Repeat("- <<: *a\n", 5000))
	var deepAliases strings.Builder
	deepAliases.WriteString("x-a0: &a0 x\n")
	for i := 1; i < 50; i++ {
		fmt.Fprintf(&deepAliases, "x-a%d: &a%d [[[*a%d]]]\n", i, i, i-1)
	}
	for _, test := range []struct{ about, text, want string }{
		{"nine anchors of nine references each", laughs(), "jobs.yaml:7:12: aliases stand for more than ten times what is written"},
		{"20,000 opening brackets", "jobs:\n- http: {url: 'http://h/', json: " + strings.Repeat("[", 20_000) + "}\n", "jobs.yaml:2: nested more than 100 deep"},
		{"2,000 opening brackets that are closed", "x-a: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n", "jobs.yaml:1:105: nested more than 100 deep"},
		{"20,000 lists in one line", strings.Repeat("- ", 20_000) + "x\n", "jobs.yaml: nested more than 100 deep"},
		{"an alias that refers to itself", "jobs: &a [*a]\n", `jobs.yaml:1:11: the alias "*a" refers to itself`},
		{"a merge that refers to itself", "jobs:\n- &a\n  <<: *a\n", `jobs.yaml:3:7: the alias "*a" refers to itself`},
		{"a large mapping merged again and again", merges.String(), "jobs.yaml:22:7: aliases stand for more than ten times what is written"},
		{"a fault in each of 100,000 places", "jobs:\n- http: {url: 'http://h/', json: [" + strings.Repeat("{a: },", 100_000) + "]}\n", `jobs.yaml:2:39: jobs[0].http.json[0].a: no value: want null or ""`},
		{"nesting by aliases", deepAliases.String(), "jobs.yaml:34:16: nested more than 100 deep"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := load(t, "jobs.yaml", test.text)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if got := strings.Split(fmt.Sprint(err), "\n"); got[0] != test.want || len(got) > 1 && !strings.HasPrefix(test.about, "a fault") {
			t.Errorf("%s: Load() = %.1000q, want %s", test.about, got, test.want)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; took > 10*time.Second || allocated > 200<<20 {
			t.Errorf("%s: took %v and %d MB", test.about, took, allocated>>20)
		}
	}
}

func TestOneAnchorForManyJobs(t *testing.T) {
	var text strings.Builder
	text.WriteString("x-common: &c {account: team, timeout: 5s, retry: {attempts: 2, on_status: [500, 502]}, labels: {a: b, c: d}}\njobs:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "- {<<: *c, http: {url: 'http://h/%d'}}\n", i)
	}
	jobs := jobsOf(t, "jobs.yaml", text.String())
	if len(jobs) != 2000 || jobs[1999].Account != "team" || jobs[1999].Retry.Attempts != 2 {
		t.Errorf("got %d jobs, the last %+v", len(jobs), jobs[len(jobs)-1])
	}
}
