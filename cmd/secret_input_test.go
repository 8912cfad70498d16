//go:build unix

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecretsOfAStoppedRun stops a run whose requests hang, in a terminal, and kills
// another: the list of what is under way has no secret either.
func TestSecretsOfAStoppedRun(t *testing.T) {
	t.Parallel()
	dir, start := secretFolder(t, leaky(t))
	jobs := strings.ReplaceAll(regexp.MustCompile(`(?m)^- .*\n`).ReplaceAllString(failing, "")+`
- {id: post, http: {method: POST, url: "http://u:typed-PASSWORD-1@PLAIN/hang?key=${env:TOK}", body: "${file:lines}", headers: *secrets}}
- {id: sleep, exec: {shell: "cat spelled; touch started; sleep 60", env: {T: "${env:TOK}"}}}
`, "PLAIN", "192.0.2.1:1") // an address for documentation: connecting never ends
	if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		c := start("run", "jobs.yaml", "-o", "out.jsonl", "--overwrite", "-v", "--grace", "100ms")
		c.Env = append(c.Env, "TMPDIR="+t.TempDir()) // for what a killed run leaves
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, filepath.Join(dir, "started"))
		os.Remove(filepath.Join(dir, "started"))
		c.Process.Signal(signal)
		exitCodeOf(t, c)
		wantNoSecret(t, "what is said", said.String(), shortToo(planted))
		wantSafeFiles(t, dir)
	}
}

// TestSecretsOfBadInput has job files and flags that are refused, and shows jobs that
// are not.
func TestSecretsOfBadInput(t *testing.T) {
	t.Parallel()
	dir, start := secretFolder(t, leaky(t))
	const typed = "http://u:typed-PASSWORD-1@127.0.0.1"
	for _, test := range []struct {
		about, stdin string
		args         []string
		code         int
	}{
		{"a bad port", `jobs: [{http: {url: "` + typed + `:9o01/?key=${env:TOK}"}}]`, []string{"run", "-", "-o", "o"}, 2},
		{"a URL of another kind", `jobs: [{http: {url: "ftp` + typed + `/${env:TOK}"}}]`, []string{"validate", "-"}, 2},
		{"a bad proxy", `jobs: [{http: {url: "http://h/", proxy: "x` + typed + `/${file:tok}"}}]`, []string{"validate", "-"}, 2},
		{"a secret that no header takes", `jobs: [{http: {url: "http://h/", headers: {A: "typed-PASSWORD-1 ${file:lines}"}}}]`, []string{"validate", "-"}, 2},
		{"a URL for a mapping", `jobs: [{http: "` + typed + `"}]`, []string{"validate", "-"}, 2},
		{"a URL for a host", `jobs: [{host: "` + typed + `", exec: {argv: [x]}}]`, []string{"validate", "-"}, 2},
		{"a URL for a number", `jobs: [{priority: "` + typed + `", exec: {argv: [x]}}]`, []string{"validate", "-"}, 2},
		{"a URL for a list", `jobs: [{exec: {argv: "curl ` + typed + `"}}]`, []string{"validate", "-"}, 2},
		{"broken YAML", `jobs: [{http: {url: "` + typed + `}}]`, []string{"validate", "-"}, 2},
		{"broken JSON", `{"http":{"url":"` + typed + `/?key=typed-KEY-2+3"}`, []string{"validate", "--format", "json", "-"}, 2},
		{"bad lines of a pipe", `{"http":{"url":"` + typed + `:9o01/"}}` + "\n" + `{"http":{"url":"` + typed + "\n" + `{"http":"` + typed + `"}` + "\n" + `{"http":{"url":"http://h/","headers":{"A":"${file:lines}"}}}` + "\n",
			[]string{"run", "--format", "jsonl", "-v", "-", "-o", "invalid.jsonl"}, 1},
		{"bad rows", "url\n" + typed + ":9o01/\n\"" + typed + "\"x\n", []string{"run", "rows.yaml", "-v", "-o", "rows.jsonl"}, 1},
		{"a bad URL of each", "x\n", []string{"each", "-v", "--url", typed + ":9o01/{}?key=${env:TOK}"}, 1},
		{"a bad header of each", "x\n", []string{"each", "--url", "http://h/{}", "--header", "typed-PASSWORD-1"}, 2},
		{"a secret that a header of each does not take", "x\n", []string{"each", "--url", "http://h/{}", "--header", "A: ${file:lines} typed-PASSWORD-1"}, 2},
		{"whole URLs", typed + ":1/?key=typed-KEY-2%2B3&ticket=typed-TICKET-6\n", []string{"each", "-v", "--attempts", "1", "--url", "{}", "--header", "A: ${env:TOK}", "-o", "each.jsonl", "--hide-query", "ticket"}, 1},
		{"jobs as understood", `jobs: [{http: {url: "` + typed + `/${env:TOK}?key=typed-KEY-2+3"}}, {exec: {argv: [curl, "` + typed + `/?key=typed-KEY-2+3", "${env:TOK}", "${env:PIN}"]}}, {exec: {shell: "curl ` + typed + `"}}]`, []string{"validate", "--show", "-"}, 0},
	} {
		rows := `jobs: [{for_each: {csv: "-"}, http: {url: "${item:url}"}}]`
		if err := os.WriteFile(filepath.Join(dir, "rows.yaml"), []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		c := start(test.args...)
		c.Stdin = strings.NewReader(test.stdin)
		said, code := outputOf(t, c, false)
		if code != test.code || said == "" {
			t.Errorf("%s: exit code %d, want %d:\n%s", test.about, code, test.code, said)
		}
		wantNoSecret(t, test.about, said, shortToo(planted))
	}
	wantSafeFiles(t, dir)
}
