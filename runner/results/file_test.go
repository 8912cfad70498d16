package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const whole = `{"v":1,"run":"r","id":"a"}` + "\n"

// put writes a file into a new folder and returns its path.
func put(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustClose(t *testing.T, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenModes(t *testing.T) {
	tests := []struct {
		name   string
		before string
		mode   Mode
		want   error
		after  string // once a record "b" was appended
	}{
		{"create refuses what has content, and leaves it", whole, Create, ErrExists, whole},
		{"create takes an empty file, as there is nothing to lose", "", Create, nil, "b"},
		{"overwrite starts anew", whole, Overwrite, nil, "b"},
		{"overwrite takes whatever there is", "notes", Overwrite, nil, "b"},
		{"resume appends", whole, Resume, nil, "ab"},
		{"resume takes an empty file", "", Resume, nil, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := put(t, tt.before)
			f, err := Open(path, tt.mode)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open = %v, want %v", err, tt.want)
			}
			if err != nil {
				if got := content(t, path); got != tt.after {
					t.Errorf("after a refusal the file holds %q, want %q", got, tt.after)
				}
				return
			}
			if err := f.Append(&Record{ID: "b"}); err != nil {
				t.Error(err)
			}
			mustClose(t, f)
			if got := strings.Join(lines(strings.NewReader(content(t, path))), ""); got != tt.after {
				t.Errorf("the file holds records %q, want %q", got, tt.after)
			}
		})
	}
}

func TestOpenMakesAFileForItsOwnerAlone(t *testing.T) {
	fresh := filepath.Join(t.TempDir(), "new.jsonl")
	for path, mode := range map[string]Mode{fresh: Create, put(t, ""): Create, put(t, whole): Overwrite} {
		f, err := Open(path, mode)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, f)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 && os.PathSeparator == '/' {
			t.Errorf("Open(%q, %d) leaves mode %o, want 600", path, mode, got)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	if os.Geteuid() != 0 {
		// Root may write anywhere.
		locked := t.TempDir()
		os.Chmod(locked, 0o500)
		if _, err := Open(filepath.Join(locked, "out.jsonl"), Create); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("Open in a read-only folder = %v, want permission denied", err)
		}
	}
	folder := t.TempDir()
	tests := []struct {
		name, path, want string
		mode             Mode
	}{
		{"a folder", folder, "is a directory", Overwrite},
		{"a missing folder", filepath.Join(folder, "no", "out.jsonl"), "its folder does not exist", Create},
		{"what exists, with the flags that help", put(t, whole), "--resume goes on with it, --overwrite starts it anew", Create},
		{"resuming what is not a results file", put(t, "jobs:\n- x"), "holds something else than results", Resume},
		{"resuming a job file in JSON Lines", put(t, `{"http":{"url":"x"}}`), "holds something else than results", Resume},
	}
	for _, tt := range tests {
		_, err := Open(tt.path, tt.mode)
		if want := fmt.Sprintf("results file %q: ", tt.path); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Open = %v, want %s… %s", tt.name, err, want, tt.want)
		}
	}
	if got := content(t, tests[3].path); got != "jobs:\n- x" {
		t.Errorf("a refused file was changed to %q", got)
	}
}

func TestResumeMendsTheLastLine(t *testing.T) {
	long := whole[:len(whole)-2] + `,"host":"` + strings.Repeat("x", 200<<10)
	tests := []struct {
		name, before, after string
		torn                int64
	}{
		{"a torn last line is cut off", whole + whole + `{"id":"c","stat`, whole + whole, 15},
		{"a whole last line gets its newline", whole + whole[:len(whole)-1], whole + whole, 0},
		{"a whole file is left alone", whole + whole, whole + whole, 0},
		{"a file of one newline is left alone", "\n", "\n", 0},
		{"a file of one torn line becomes empty", `{"v":1,"ru`, "", 10},
		{"even if the tear is earlier", `{"v`, "", 3},
		{"a torn line may be long", whole + long, whole, int64(len(long))},
		{"zeros that a crash of the machine left are cut off", whole + "\x00\x00\x00", whole, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := put(t, tt.before)
			for _, torn := range []int64{tt.torn, 0} { // the second time nothing is left to do
				f, err := Open(path, Resume)
				if err != nil {
					t.Fatal(err)
				}
				if f.Torn != torn {
					t.Errorf("Open: Torn = %d, want %d", f.Torn, torn)
				}
				mustClose(t, f)
				if got := content(t, path); got != tt.after {
					t.Errorf("Open left %.80q, want %.80q", got, tt.after)
				}
			}
		})
	}
}

func TestRecordsAreThoseBeforeTheRun(t *testing.T) {
	f, err := Open(put(t, whole+`{"v":1,"to`), Resume)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, f)
	before := f.Records()
	if err := f.Append(&Record{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range before {
		got = append(got, fmt.Sprint(r.ID, err))
	}
	if diff := cmp.Diff([]string{"a<nil>"}, got); diff != "" {
		t.Errorf("Records (-want +got):\n%s", diff)
	}
}

func TestAFileInUseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	held, err := Open(path, Create)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Append(&Record{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	want := content(t, path)
	for _, mode := range []Mode{Create, Overwrite, Resume} {
		if _, err := Open(path, mode); !errors.Is(err, ErrInUse) {
			t.Errorf("Open(mode %d) of a file in use = %v, want %v", mode, err, ErrInUse)
		}
	}
	if got := content(t, path); got != want {
		t.Errorf("a file in use was changed from %q to %q", want, got)
	}
	mustClose(t, held)
	f, err := Open(path, Resume)
	if err != nil {
		t.Fatalf("Open after the other has closed: %v", err)
	}
	mustClose(t, f)
}

func TestOneOfManyCreatesWins(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "out.jsonl")
		var wins, losses sync.Map
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				f, err := Open(path, Create)
				if err == nil {
					wins.Store(i, f)
				} else {
					losses.Store(i, err)
				}
			})
		}
		all.Wait()
		won := 0
		wins.Range(func(_, f any) bool {
			won++
			mustClose(t, f.(*File))
			return true
		})
		losses.Range(func(_, err any) bool {
			if !errors.Is(err.(error), ErrInUse) {
				t.Errorf("a Create that lost = %v, want %v", err, ErrInUse)
			}
			return true
		})
		if won != 1 {
			t.Fatalf("%d of 8 Creates won, want 1", won)
		}
	}
}

// TestMain lets this binary be the run that is killed below.
func TestMain(m *testing.M) {
	if path := os.Getenv("RESULTS_TEST_HOLD"); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

// hold takes path, writes a record and a part of one, says so, and waits.
func hold(path string) {
	f, err := Open(path, Resume)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	f.Append(&Record{ID: "a"})
	f.tail.file.WriteString(`{"v":1,"run`)
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
}

func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	run := exec.Command(os.Args[0])
	run.Env = append(os.Environ(), "RESULTS_TEST_HOLD="+path)
	if _, err := run.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	if said, _ := bufio.NewReader(out).ReadString('\n'); said != "held\n" {
		t.Fatalf("the run said %q, want held", said)
	}
	if _, err := Open(path, Resume); !errors.Is(err, ErrInUse) {
		t.Errorf("Open of a file that another process holds = %v, want %v", err, ErrInUse)
	}
	run.Process.Kill()
	run.Wait()
	f, err := Open(path, Resume)
	if err != nil {
		t.Fatalf("Open after the run was killed: %v", err)
	}
	defer mustClose(t, f)
	if want := int64(len(`{"v":1,"run`)); f.Torn != want {
		t.Errorf("Torn = %d, want %d", f.Torn, want)
	}
}

func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"jobs.yaml", "limits.yaml"} {
		if err := os.WriteFile(name, []byte("jobs: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("jobs.yaml", "link"), os.Link("jobs.yaml", "hard"), os.Symlink("nowhere", "loose")); err != nil {
		t.Skip(err)
	}
	tests := []struct{ name, path, want string }{
		{"the same name", "limits.yaml", "limits.yaml"},
		{"another spelling", "./jobs.yaml", "jobs.yaml"},
		{"the whole path", filepath.Join(dir, "jobs.yaml"), "jobs.yaml"},
		{"a symbolic link", "link", "jobs.yaml"},
		{"a hard link", "hard", "jobs.yaml"},
		{"a file that is not there yet", "new.jsonl", ""},
		{"a link to nowhere", "loose", ""},
		{"a folder", ".", ""},
	}
	for _, tt := range tests {
		if got := SameFile(tt.path, "-", "limits.yaml", "jobs.yaml"); got != tt.want {
			t.Errorf("%s: SameFile(%q) = %q, want %q", tt.name, tt.path, got, tt.want)
		}
	}
}
