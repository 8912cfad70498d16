//go:build unix

package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

// TestHostileNames puts items where names belong: those that can be names arrive as
// they are, with others nothing is run.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	base := teller(t)
	names := slices.DeleteFunc(slices.Clone(oneLine), func(s string) bool { return strings.ContainsAny(s, "/\\\t\u2028\u202e") })
	values, _ := json.Marshal(names)
	dir, _, stderr, code := inFolder(t, map[string]string{"jobs.json": `{"jobs":[{"for_each":{"values":` + string(values) + `},"id":"${item:value}","account":"${item:value}",
		"output":{"save":"saved-${item:value}"},"http":{"url":"` + base + `/","headers":{"X-V":"${item:value}"}}}]}`}, "", "run", "jobs.json", "-o", "out.jsonl")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	f, err := os.Open(filepath.Join(dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ids []string
	for r := range results.Read(f) {
		ids = append(ids, r.ID)
		want := told(got{Path: "/", Header: map[string][]string{"X-V": {r.ID}}})
		saved, err := os.ReadFile(filepath.Join(dir, "saved-"+r.ID))
		if r.HTTP.Body != want || r.Account != r.ID || err != nil || string(saved) != want {
			t.Errorf("item %q: account %q, header %s, saved %s (%v)", r.ID, r.Account, r.HTTP.Body, saved, err)
		}
	}
	slices.Sort(ids)
	slices.Sort(names)
	if diff := cmp.Diff(names, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}

	for about, job := range map[string]string{
		"a line break in an id":            `"for_each":{"values":["a\nb"]},"id":"${item:value}","exec":{"shell":"touch pwned"}`,
		"a path that leads elsewhere":      `"for_each":{"values":["../x"]},"output":{"save":"out-${item:value}"},"exec":{"shell":"touch pwned"}`,
		"a folder above":                   `"for_each":{"values":[".."]},"output":{"save":"${item:value}"},"exec":{"shell":"touch pwned"}`,
		"NUL in an argument":               `"for_each":{"values":["a\u0000b"]},"exec":{"argv":["touch","pwned","${item:value}"]}`,
		"NUL in a shell's variable":        `"for_each":{"values":["a\u0000b"]},"exec":{"shell":"touch pwned"}`,
		"NUL in a body":                    `"for_each":{"values":["a\u0000b"]},"http":{"method":"POST","url":"http://h/","body":"${item:value}"}`,
		"a second header":                  `"for_each":{"values":["a\r\nX-Evil: 1"]},"http":{"url":"http://h/","headers":{"A":"${item:value}"}}`,
		"a host with a path":               `"for_each":{"values":["h/x?"]},"host":"${item:value}","exec":{"shell":"touch pwned"}`,
		"a URL of another kind":            `"for_each":{"values":["file:///etc/passwd"]},"http":{"url":"${item:value}"}`,
		"a way up in a URL":                `"for_each":{"values":[".."]},"http":{"url":"http://h/users/${item:value}/delete"}`,
		"no way at all in a URL":           `"for_each":{"values":["."]},"http":{"url":"http://h/users/${item:value}"}`,
		"a word in place of a number":      `"for_each":{"values":["1 # high"]},"priority":"${item:value}","exec":{"shell":"touch pwned"}`,
		"a switch in place of a list":      `"for_each":{"values":["[gpu]"]},"pools":"${item:value}","exec":{"shell":"touch pwned"}`,
		"a program that is not there":      `"for_each":{"values":[""]},"exec":{"argv":["${item:value}","x"]}`,
		"a mapping from a text":            `"for_each":{"values":["{argv: [touch, pwned]}"]},"exec":"${item:value}"`,
		"a deadline that is no time":       `"for_each":{"values":["1h\n"]},"deadline":"${item:value}","exec":{"shell":"touch pwned"}`,
		"rows of a file that an item says": `"for_each":{"lines":"${item:value}"},"exec":{"shell":"touch pwned"}`,
	} {
		dir, _, stderr, code := inFolder(t, map[string]string{"jobs.json": `{"jobs":[{"exec":{"shell":"touch pwned"}},{` + job + `}]}`}, "", "run", "jobs.json", "-o", "out.jsonl")
		_, err := os.Stat(filepath.Join(dir, "out.jsonl"))
		if code != 2 || !strings.Contains(stderr, "jobs.json:1:") || err == nil {
			t.Errorf("%s: exit code %d, results %v, stderr %s", about, code, err, stderr)
		}
	}
}

// TestHostileDirs starts commands in folders that items name.
func TestHostileDirs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	names := slices.DeleteFunc(slices.Clone(hostile), func(s string) bool { return strings.Contains(s, "/") })
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(root, "d-"+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, _, stderr, code := inFolder(t, map[string]string{
		"rows":      rowsAs["jsonl"]("v", names),
		"jobs.json": `{"jobs":[{"for_each":{"jsonl":"rows"},"exec":{"dir":"` + root + `/d-${item:v}","env":{"V":"${item:v}"},"shell":"printf %s \"$V\" >it"}}]}`,
	}, "", "run", "jobs.json", "-o", "out.jsonl")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, name := range names {
		if it, err := os.ReadFile(filepath.Join(root, "d-"+name, "it")); string(it) != name {
			t.Errorf("in folder d-%q: %q, %v", name, it, err)
		}
	}
}
