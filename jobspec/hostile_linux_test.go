package jobspec_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// TestHostileSizes loads files of 1 GiB without a line break, as they are and from a
// pipe, and files that stand for far more than they say, in a process of its own: they
// are refused within 2 s of processor time and 200 MB.
func TestHostileSizes(t *testing.T) {
	if name := os.Getenv("HOSTILE"); name != "" {
		s, err := jobspec.Load(jobspec.Options{Files: []string{name}, Format: os.Getenv("FORMAT"), Stdin: os.Stdin})
		if err == nil {
			_, err = s.Source.Next()
		}
		status, _ := os.ReadFile("/proc/self/status")
		_, peak, _ := strings.Cut(string(status), "VmHWM:") // of the process alone, in kB
		fmt.Println(strings.Fields(peak)[0], err)
		return
	}
	var laughs strings.Builder
	laughs.WriteString("x-0: &l0 [" + strings.Repeat("l,", 10) + "]\n")
	for i := range 20 {
		laughs.WriteString(fmt.Sprintf("x-%d: &l%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*l%d,", i), 10)))
	}
	deep := strings.Repeat("[", 8<<20)
	write(t, map[string]string{
		"laughs.yaml": laughs.String(), "self.yaml": "jobs: &a [*a]\n",
		"deep.yaml": "jobs: " + deep, "deep.json": `{"jobs":` + deep, "deep.jsonl": deep,
	})
	for _, name := range []string{"long.yaml", "long.json", "long.jsonl", "long.csv", "long.txt"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, 1<<30); err != nil { // sparse
			t.Fatal(err)
		}
	}
	for kind, file := range map[string]string{"csv": "long.csv", "lines": "long.txt", "jsonl": "long.jsonl"} {
		if err := os.WriteFile(kind+".yaml", []byte("jobs: [{for_each: {"+kind+": "+file+"}, exec: {argv: [x]}}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kind+"-.yaml", []byte("jobs: [{for_each: {"+kind+": '-'}, exec: {argv: [x]}}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"-": "a document of over 64 MiB", "- yaml": "a document of over 64 MiB", "- json": "a document of over 64 MiB", "- jsonl": "a line of over 16 MiB",
		"csv-.yaml": "<stdin>:1: a line of over 16 MiB", "lines-.yaml": "<stdin>:1: a line of over 16 MiB", "jsonl-.yaml": "<stdin>:1: a line of over 16 MiB",
		"long.yaml": "a document of over 64 MiB", "long.json": "a document of over 64 MiB", "long.jsonl": "a line of over 16 MiB",
		"csv.yaml": "long.csv:1: a line of over 16 MiB", "lines.yaml": "long.txt:1: a line of over 16 MiB", "jsonl.yaml": "long.jsonl:1: a line of over 16 MiB",
		"laughs.yaml": "aliases stand for more than ten times what is written", "self.yaml": `the alias "*a" refers to itself`,
		"deep.yaml": "nested more than 100 deep", "deep.json": "nested more than 100 deep", "deep.jsonl": "nested more than 100 deep",
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestHostileSizes$")
		file, format, _ := strings.Cut(name, " ")
		c.Env = append(os.Environ(), "HOSTILE="+file, "FORMAT="+format)
		if strings.Contains(file, "-") {
			c.Stdin = io.LimitReader(zeros{}, 1<<30) // by a pipe
		}
		out, err := c.Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("Load(%s) says %.500s (%v), want %s", name, out, err, want)
		}
		used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		var peak int
		fmt.Sscan(string(out), &peak)
		if !underRace() && (used > 2*time.Second || peak == 0 || peak*1024 > 200e6) {
			t.Errorf("Load(%s) took %v and %d KiB", name, used, peak)
		}
	}
}

// zeros are read without end.
type zeros struct{}

// Read sets all of b to 0.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestSecretsOfPipes has files that might never open, or never end, in place of a secret.
func TestSecretsOfPipes(t *testing.T) {
	write(t, map[string]string{"real": "a-secret-of-a-file"})
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("pipe", "to-pipe"), os.Symlink("real", "to-real")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pipe": `"pipe" is not a regular file`, "to-pipe": `"to-pipe" is not a regular file`, "/dev/zero": `"/dev/zero" is not a regular file`,
		".": `"." is not a regular file`, "to-real": "<nil>", "gone": "open gone: no such file or directory",
	} {
		_, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"exec":{"argv":["x","${file:` + name + `}"]}}]}`)})
		if !strings.HasSuffix(fmt.Sprint(err), want) {
			t.Errorf("Load with ${file:%s}: %v, want %s", name, err, want)
		}
	}
}

// underRace reports whether the race detector takes time and memory of its own.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
