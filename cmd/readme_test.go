package cmd_test

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/cmd"
	"agentlimit/runner/results"
)

// block is a fenced block of README.md.
type block struct {
	line    int    // of the fence
	chapter string // in which it stands
	kind    string
	text    string
}

// file returns the name that a job file's first line gives it.
func (b block) file() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
	return name
}

func readme(t *testing.T) (text string, blocks []block) {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text = string(data)
	for _, at := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		_, chapter, _ := strings.Cut(text[strings.LastIndex(text[:at[0]], "\n## ")+1:at[0]], "# ")
		chapter, _, _ = strings.Cut(chapter, "\n")
		blocks = append(blocks, block{1 + strings.Count(text[:at[0]], "\n"), chapter, text[at[2]:at[3]], text[at[4]:at[5]]})
	}
	return text, blocks
}

// TestReadmeExamples does what README.md shows, each chapter in its order in a folder
// of its own: its job files are valid, and its commands, as they stand there, say what
// stands below them.
func TestReadmeExamples(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the commands are for a shell, and the service's certificate is in SSL_CERT_FILE")
	}
	_, blocks := readme(t)
	env := newService(t)
	chapters := make(map[string][]block)
	for _, b := range blocks {
		chapters[b.chapter] = append(chapters[b.chapter], b)
	}
	for name, chapter := range chapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := readmeDir(t, blocks)
			for _, b := range chapter {
				t.Run("line "+strconv.Itoa(b.line), func(t *testing.T) { b.try(t, dir, env) })
			}
		})
	}
}

// try does what a block shows.
func (b block) try(t *testing.T, dir string, env []string) {
	if _, err := exec.LookPath("jq"); err != nil && strings.Contains(b.text, "jq ") {
		t.Skip("jq is not on this machine")
	}
	switch {
	case strings.HasPrefix(b.file(), ".github/"):
		for _, script := range workflowSteps(t, b.text) {
			runShell(t, dir, script, append(env, "TOKEN=a-long-secret", "GITHUB_PATH=path", "GITHUB_STEP_SUMMARY=summary.md")...)
		}
	case b.kind == "yaml":
		runShell(t, dir, "agentlimit validate "+b.file(), env...)
	case b.kind == "sh":
		runShell(t, dir, "sh -n "+b.file())
	case b.kind == "crontab":
		if said := runShell(t, dir, cronLine(b.text), env...); said != "" {
			t.Errorf("%s would mail:\n%s", b.text, said)
		}
	case b.kind == "console":
		commands, want := transcript(b.text)
		got := runShell(t, dir, commands, env...)
		if diff := cmp.Diff(steady(want), steady(got)); want != "" && diff != "" {
			t.Errorf("%s(-README +got):\n%s", commands, diff)
		}
	default:
		t.Errorf("README.md:%d: a block of %q: want yaml, sh, crontab or console", b.line, b.kind)
	}
}

// readmeDir returns a folder in which the commands of README.md find its files, and
// a token.
func readmeDir(t *testing.T, blocks []block) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"token": "a-long-secret\n"}
	for _, b := range blocks {
		if (b.kind == "yaml" || b.kind == "sh") && !strings.HasPrefix(b.file(), ".") {
			files[b.file()] = b.text
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// transcript splits what a terminal showed into the commands and what they said.
// The command that runs these very tests is left to the gate.
func transcript(text string) (commands, said string) {
	for line := range strings.Lines(text) {
		command, found := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case goesOn:
			commands += more
		case !found:
			said += line
		case command != "go test ./...\n":
			commands += strings.Replace(command, "go run . ", "agentlimit ", 1)
		}
	}
	return commands, said
}

// runShell runs commands, with variables, and returns what they said. If they do not
// ask for the exit code, it must be 0 after each.
func runShell(t *testing.T, dir, commands string, env ...string) string {
	t.Helper()
	if !strings.Contains(commands, "$?") {
		commands = "set -e\n" + commands
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", commands)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	said, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", commands, err, said)
	}
	return string(said)
}

var (
	// What comes behind the peak in the table of keys was measured.
	measured = regexp.MustCompile(`(?m)^(  (?:key|\w+/\S+) +\S+ +\S+) .*$`)
	aRun     = regexp.MustCompile(`\b\d{8}T\d{6}Z-\w{6}\b.*`) // its peak was measured, too
	duration = regexp.MustCompile(`\b[0-9.]+(µs|ms|s)\b`)
	moment   = regexp.MustCompile(`\b(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?`)
	oneOf    = regexp.MustCompile(`such as \S+:`)
)

// steady leaves out of what a command said what is different each time.
func steady(said string) string {
	said = measured.ReplaceAllString(said, "$1")
	said = oneOf.ReplaceAllString(said, "such as JOB:")
	said = aRun.ReplaceAllString(said, "RUN")
	return moment.ReplaceAllString(duration.ReplaceAllString(said, "TIME"), "MOMENT")
}

// TestGateRunsTheReadme keeps the two commands that a newcomer is told, and that the
// gate runs, the same.
func TestGateRunsTheReadme(t *testing.T) {
	text, _ := readme(t)
	gate, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go run . run --overwrite examples/quickstart.yaml", "go test ./..."} {
		if !strings.Contains(text, "\n$ "+command+"\n") {
			t.Errorf("README.md does not have the command %q", command)
		}
		if !strings.Contains(string(gate), "\nstep "+command+"\n") {
			t.Errorf(".ci/run does not have the step %q", command)
		}
	}
}

// TestReadmeIsComplete wants README.md to name every field of a job file, of a record
// and of the summary file, every flag and every command.
func TestReadmeIsComplete(t *testing.T) {
	text, _ := readme(t)
	for what, names := range map[string][]string{
		"the field of a job file": jobFileFields(t),
		"the field of a record":   recordFields(reflect.TypeFor[results.Record]()),
		"the field of a summary":  jsonFields(t, "cmd"),
		"the field of an audit":   jsonFields(t, "runner/audit"),
		"the flag of run":         helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "run", "--help"),
		"the flag of each":        helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "each", "--help"),
		"the flag of plan":        helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "plan", "--help"),
		"the flag of init":        helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "init", "--help"),
		"the flag of validate":    helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "validate", "--help"),
		"the flag of report":      helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "report", "--help"),
		"the flag of audit":       helpNames(t, `(?m)^ +(?:-\w, )?(--[a-z-]+)`, "audit", "--help"),
		"the command":             helpNames(t, `(?m)^  ([a-z]+)  +[A-Z]`, "--help"),
	} {
		if len(names) == 0 {
			t.Errorf("%s: none was found", what)
		}
		for _, name := range names {
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+name+" ") {
				t.Errorf("README.md does not have %s %q", what, name)
			}
		}
	}
}

// jobFileFields are the keys that the package jobspec knows: the first words of the
// entries of its tables, which are variables named …Fields.
func jobFileFields(t *testing.T) []string {
	var names []string
	for file, parsed := range sources(t) {
		if path.Dir(file) != "jobspec" {
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasSuffix(spec.Names[0].Name, "Fields") {
				return true
			}
			for _, entry := range spec.Values[0].(*ast.CompositeLit).Elts {
				word := entry.(*ast.CompositeLit).Elts[0].(*ast.BasicLit)
				name, _ := strconv.Unquote(word.Value)
				names = append(names, name)
			}
			return false
		})
	}
	return names
}

// recordFields are the names of a record's fields, those of its parts included. A
// stream's fields are told of by their ends.
func recordFields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[results.Record]().PkgPath() {
		return nil
	}
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		for _, stream := range []string{"stdout_", "stderr_"} {
			if end, found := strings.CutPrefix(name, stream); found {
				name = "_" + end
			}
		}
		names = append(append(names, name), recordFields(field.Type)...)
	}
	return names
}

// jsonFields are the names of the fields of all JSON that a package writes.
func jsonFields(t *testing.T, pkg string) []string {
	var names []string
	for file, parsed := range sources(t) {
		if path.Dir(file) != pkg {
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				tag, _ := strconv.Unquote(field.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

// helpNames are the names that the help of a command lists.
func helpNames(t *testing.T, pattern string, args ...string) []string {
	var help bytes.Buffer
	if code := cmd.Run(t.Context(), args, nil, &help, &help); code != 0 {
		t.Errorf("agentlimit %q: exit code %d", args, code)
	}
	var names []string
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(help.String(), -1) {
		if found[1] != "--help" {
			names = append(names, found[1])
		}
	}
	return names
}
