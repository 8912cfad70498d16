package jobspec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
)

func TestSecretsAreCollected(t *testing.T) {
	for _, test := range []struct {
		about, fields string
		want          []string
	}{
		{"longest first, each once", `http: {url: "http://h/${env:TOKEN}/${env:TOKEN}", headers: {A: "${env:LONGER}"}}`, []string{"a-longer-secret", "tok-1234567"}},
		{"in json, form and a command", `exec: {argv: [x, "${env:TOKEN}"], env: {K: "${env:LONGER}"}}`, []string{"a-longer-secret", "tok-1234567"}},
		{"a public value is none", `account: "${env:REGION}", http: {url: "http://h/${env:REGION}"}`, nil},
	} {
		j := jobsOf(t, "jobs.yaml", "public_env: [REGION]\njobs:\n- {"+test.fields+"}\n")[0]
		if diff := cmp.Diff(test.want, j.Secrets); diff != "" {
			t.Errorf("%s: secrets of %s (-want +got):\n%s", test.about, test.fields, diff)
		}
	}
}

func TestSecretsAreOfTheWholeRun(t *testing.T) {
	js := jobsOf(t, "jobs.yaml", "jobs:\n- {exec: {argv: [env]}}\n- {http: {url: \"http://h/${env:TOKEN}\"}}\n- {exec: {argv: [x], env: {K: \"${env:LONGER}\"}}}\n")
	for _, j := range js {
		if diff := cmp.Diff([]string{"a-longer-secret", "tok-1234567"}, j.Secrets); diff != "" {
			t.Errorf("secrets to hide in what job %d shows (-want +got):\n%s", j.Seq, diff)
		}
	}
}

func TestShellTextIsLeftAlone(t *testing.T) {
	j := jobsOf(t, "jobs.yaml", `
vars: {base-url: "a ' b", other: x}
jobs:
- exec:
    shell: echo "${HOME} ${var:base} $VAR_BASE_URL ${env:NONE}"
    env: {KEY: "${env:TOKEN}"}
`)[0]
	want := []jobspec.EnvVar{{Name: "VAR_BASE_URL", Value: "a ' b"}, {Name: "VAR_OTHER", Value: "x"}, {Name: "KEY", Value: "tok-1234567"}}
	if j.Exec.Shell != `echo "${HOME} ${var:base} $VAR_BASE_URL ${env:NONE}"` || !cmp.Equal(j.Exec.Env, want) {
		t.Errorf("shell = %q, env = %v", j.Exec.Shell, j.Exec.Env)
	}
}

func TestOtherDollarsInVars(t *testing.T) {
	j := jobsOf(t, "jobs.yaml", "vars: {v: '${HOME} ${x:-y} $${env:TOKEN}'}\njobs: [{exec: {argv: [echo, '${var:v}']}}]\n")[0]
	if got, want := j.Exec.Argv[1], "${HOME} ${x:-y} ${env:TOKEN}"; got != want {
		t.Errorf("argv[1] = %q, want %q", got, want)
	}
}

func TestErrorsShowNoSecret(t *testing.T) {
	for _, fields := range []string{
		`http: {url: "http://u:PASSWORD-3@127.0.0.1:9o01/"}`,
		`http: {url: "ftp://${env:TOKEN}/?api_key=PASSWORD-3"}`,
		`http: {url: "http://h/${env:LINES}"}`,
		`http: {url: "http://${env:TOKEN} ${env:TOKEN}/"}`,
		`http: {url: "http://h/", headers: {A: "PASSWORD-3\n${env:LINES}"}}`,
		`http: {url: "http://h/", proxy: "x://u:PASSWORD-3@h"}`,
	} {
		_, err := load(t, "jobs.yaml", "jobs:\n- {"+fields+"}\n")
		if err == nil {
			t.Errorf("Load of %s succeeded", fields)
			continue
		}
		for _, secret := range []string{"PASSWORD-3", "tok-1234567", "cd"} {
			if strings.Contains(strings.ReplaceAll(err.Error(), "cannot", ""), secret) {
				t.Errorf("Load of %s shows %q: %v", fields, secret, err)
			}
		}
	}
}

// hashes returns the hashes of the jobs of a file.
func hashes(t *testing.T, text string) (all []string) {
	for _, j := range jobsOf(t, "jobs.yaml", text) {
		all = append(all, j.Hash)
	}
	return all
}

func TestHash(t *testing.T) {
	base := hashes(t, "vars: {v: one}\njobs:\n- {id: a, http: {url: 'http://h/${var:v}?k=${env:TOKEN}', headers: {A: b}}}\n- {exec: {shell: 'echo $VAR_V'}}\n")
	for _, test := range []struct {
		about, text string
		same        []bool
	}{
		{"the same call in another job", "vars: {v: one}\njobs:\n- {id: b, timeout: 3s, http: {headers: {A: b}, url: 'http://h/one?k=${env:TOKEN}'}}\n- {priority: 1, exec: {shell: 'echo $VAR_V'}}\n", []bool{true, true}},
		{"another value of a var", "vars: {v: two}\njobs:\n- {http: {url: 'http://h/${var:v}?k=${env:TOKEN}', headers: {A: b}}}\n- {exec: {shell: 'echo $VAR_V'}}\n", []bool{false, false}},
		{"another var", "vars: {v: one, w: x}\njobs:\n- {http: {url: 'http://h/${var:v}?k=${env:TOKEN}', headers: {A: b}}}\n- {exec: {shell: 'echo $VAR_V'}}\n", []bool{true, true}},
		{"a default that fills the call", "vars: {v: one}\ndefaults: {http: {headers: {A: b}}, exec: {shell: 'echo $VAR_V'}}\njobs:\n- {http: {url: 'http://h/${var:v}?k=${env:TOKEN}'}}\n- {exec: {}}\n", []bool{true, true}},
		{"another secret's name, and a directory", "vars: {v: one}\njobs:\n- {http: {url: 'http://h/${var:v}?k=${env:LONGER}', headers: {A: b}}}\n- {exec: {shell: 'echo $VAR_V', dir: x}}\n", []bool{false, false}},
		{"a literal that looks like a reference", "vars: {v: one}\njobs:\n- {http: {url: 'http://h/${var:v}?k=$${env:TOKEN}', headers: {A: b}}}\n- {exec: {shell: 'echo'}}\n", []bool{false, false}},
	} {
		got := hashes(t, test.text)
		for i := range base {
			if (got[i] == base[i]) != test.same[i] {
				t.Errorf("%s: job %d: same hash = %v, want %v", test.about, i, got[i] == base[i], test.same[i])
			}
		}
	}
}

func TestHashOfSpellings(t *testing.T) {
	for _, test := range []struct {
		about, one, two string
		same            bool
	}{
		{"quotes around a text", `exec: {argv: [a, 1, true]}`, `exec: {argv: ["a", "1", "true"]}`, true},
		{"quotes in a body, where they tell types apart", `http: {url: "http://h/", json: 1}`, `http: {url: "http://h/", json: "1"}`, false},
		{"a folder in front of the mark", `exec: {argv: [a], dir: x/y}`, `exec: {argv: [a], dir: /p/q/./x/y}`, true},
		{"folders of certificates", `http: {url: "http://h/", tls: {ca_file: ca}}`, `http: {url: "http://h/", tls: {ca_file: /p/./ca}}`, true},
		{"another folder behind the mark", `exec: {argv: [a], dir: x/y}`, `exec: {argv: [a], dir: /p/./y}`, false},
		{"a mark in a text that is no path of the file", `exec: {argv: [a, b]}`, `exec: {argv: [a, /p/./b]}`, false},
		{"a mark in a relative path", `exec: {argv: [a], dir: x}`, `exec: {argv: [a], dir: p/./x}`, false},
	} {
		all := hashes(t, "jobs:\n- {"+test.one+"}\n- {"+test.two+"}\n")
		if same := all[0] == all[1]; same != test.same {
			t.Errorf("%s: same hash of %s and %s = %v", test.about, test.one, test.two, same)
		}
	}
}

func TestHashDoesNotDependOnSecretValues(t *testing.T) {
	var all []string
	for _, secret := range []string{"first-secret", "other-secret"} {
		write(t, map[string]string{"jobs.yaml": "jobs: [{http: {url: 'http://h/', json: {k: '${env:K}'}, headers: {A: '${env:K}'}}}]\n"})
		s, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}, Env: func(string) (string, bool) { return secret, true }})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, drain(t, s)[0].Hash)
	}
	if all[0] != all[1] {
		t.Errorf("hashes = %q", all)
	}
}

func TestDefaultIDs(t *testing.T) {
	const same = "- {http: {url: 'http://h/${job:id}'}}\n"
	jobs := jobsOf(t, "jobs.yaml", "jobs:\n"+same+"- {id: own, http: {url: 'http://h/'}}\n"+same+same+"- {id: X, http: {url: 'http://h/'}}\n- {id: x, http: {url: 'http://h/'}}\n")
	base := strings.TrimPrefix(jobs[0].Hash, "sha256:")[:12]
	var got []string
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	if diff := cmp.Diff([]string{base, "own", base + "-2", base + "-3", "X", "x"}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if got, want := jobs[3].HTTP.URL, "http://h/"+base+"-3"; got != want {
		t.Errorf("${job:id} in a job without an id: URL = %q, want %q", got, want)
	}
}

func TestVarsOfFlags(t *testing.T) {
	for _, test := range []struct {
		about, name, value, want string
	}{
		{"an empty value", "base", "", `--var: vars.base: an empty text: leave the key out`},
		{"a name that makes the variable of another", "b-c", "x", `jobs.yaml:1:22: vars.b_c: "b-c" and "b_c" would both be the variable VAR_B_C`},
	} {
		write(t, map[string]string{"jobs.yaml": "vars: {base: b, b_c: d}\njobs: []\n"})
		_, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}, Vars: map[string]string{test.name: test.value}})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: Load with --var %s=%s: %v, want %s", test.about, test.name, test.value, err, test.want)
		}
	}
	write(t, map[string]string{"jobs.yaml": "jobs: [{exec: {argv: ['${var:x}']}}]\n"})
	s, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}, Vars: map[string]string{"x": "${var:x} $${"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(t, s)[0].Exec.Argv[0]; got != "${var:x} $${" {
		t.Errorf("what is put in is not looked at again: %q", got)
	}
}
