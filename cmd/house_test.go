package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// below says, for each package, which of the others it may use. CONTRIBUTING.md
// has the picture.
var below = map[string][]string{
	"limits":             nil,
	"limits/conformance": {"limits"},
	"testscripts/bench":  nil, // not of the product: it measures that
	"limits/folder":      {"limits"},
	"limits/redis":       {"limits"},
	"jobspec":            {"limits"},
	"jobspec/curl":       {"jobspec"},
	"runner/results":     {"limits"},
	"runner/audit":       {"limits", "runner/results"},
	"runner/report":      {"limits", "runner/results", "runner/audit"},
	"runner/schedule":    {"limits"},
	"runner/call":        {"limits", "jobspec", "runner/results"},
	"runner":             {"limits", "jobspec", "runner/results", "runner/schedule", "runner/call"},
	"runner/plan":        {"limits", "jobspec", "runner/results", "runner/call", "runner"},
	"cmd": {"limits", "jobspec", "jobspec/curl", "runner/results", "runner/schedule", "runner/call", "runner/audit",
		"runner/report", "runner", "runner/plan", "limits/folder", "limits/redis"},
	"": {"cmd"},
}

// commandLine are the modules that only cmd may use.
var commandLine = []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/schollz/progressbar/v3"}

func TestArrowsPointDown(t *testing.T) {
	for file, parsed := range sources(t) {
		dir := strings.TrimPrefix(path.Dir(file), ".")
		allowed, known := below[dir]
		if !known {
			t.Errorf("%s: a package that CONTRIBUTING.md does not show", file)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue // a test may look at what is built on its package
		}
		for _, spec := range parsed.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if ours, found := strings.CutPrefix(name, "agentlimit/"); found && !slices.Contains(allowed, ours) {
				t.Errorf("%s: imports %s, which is not below it", file, ours)
			}
			if slices.Contains(commandLine, name) && dir != "cmd" {
				t.Errorf("%s: imports %s, which only cmd may", file, name)
			}
		}
	}
}

func TestNoPackageForLeftovers(t *testing.T) {
	for file, parsed := range sources(t) {
		name := strings.TrimSuffix(parsed.Name.Name, "_test")
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc"}, name) {
			t.Errorf("%s: package %s says nothing of what is in it", file, name)
		}
	}
}

// TestTopLevel keeps the first thing that a newcomer sees as it is. What git
// ignores may lie about.
func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile("../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	patterns := strings.Fields(string(ignored))
	var got []string
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") || slices.ContainsFunc(patterns, func(p string) bool {
			match, err := path.Match(strings.TrimPrefix(p, "/"), e.Name())
			return match || err != nil
		})
		if !hidden {
			got = append(got, e.Name())
		}
	}
	want := []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "cmd", "examples", "go.mod", "go.sum", "jobspec",
		"limits", "main.go", "runner", "testscripts",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the top level (-want +got):\n%s", diff)
	}
}

// TestContributing wants CONTRIBUTING.md to send people to files that are there, and
// to say what each direct dependency is for.
func TestContributing(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("`([a-z_/]+/[a-z_]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("..", found[1])); err != nil {
			t.Errorf("CONTRIBUTING.md: %v", err)
		}
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(module), -1) {
		if !strings.Contains(string(text), "\n| "+found[1]+" ") {
			t.Errorf("CONTRIBUTING.md does not say what %s is for", found[1])
		}
	}
}

// sources are the Go files of the project, by their path from the top.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		files[strings.TrimPrefix(filepath.ToSlash(name), "../")] = parsed
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
