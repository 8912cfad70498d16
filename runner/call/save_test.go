package call

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

func TestSaveReplacesRegularFilesOnly(t *testing.T) {
	var requests atomic.Int32
	srv := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	t.Chdir(t.TempDir())
	for _, err := range []error{
		os.Mkdir("folder", 0o700),
		os.WriteFile("jobs.yaml", []byte("jobs"), 0o600),
		os.Link("jobs.yaml", "hard"),
		os.Symlink("jobs.yaml", "link"),
		os.Symlink("folder", "alias"),
		os.Symlink(os.DevNull, "null"),
		os.Symlink("nothing", "dangling"),
	} {
		if err != nil {
			t.Skip(err) // a system or file system without links
		}
	}
	whole, err := filepath.Abs("results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const irregular, kept = " is there and is no regular file", "it is a file that this run reads or writes"
	c := newClient(t, Config{Keep: []string{"jobs.yaml", "results.jsonl", "folder/state"}})
	for _, test := range []struct{ about, path, want string }{
		{"a folder", "folder", `"folder"` + irregular},
		{"a device", os.DevNull, `"` + os.DevNull + `"` + irregular},
		{"a link to a device", "null", `"null"` + irregular},
		{"a link to a file", "link", `"link"` + irregular},
		{"a link to nothing", "dangling", `"dangling"` + irregular},
		{"a file to keep", "./jobs.yaml", kept},
		{"another name of it", "hard", kept},
		{"one that does not exist yet", "folder/../results.jsonl", kept},
		{"its whole path", whole, kept},
		{"one by another folder's name", "alias/state", kept},
	} {
		for kind, job := range map[string]func() Outcome{
			"request": func() Outcome { return c.Call(t.Context(), Attempt{Job: httpJob(srv.URL, saveTo(test.path))}) },
			"command": func() Outcome { return c.Call(t.Context(), Attempt{Job: execJob([]string{"true"}, saveTo(test.path))}) },
		} {
			out := job()
			if out.Kind != Broken || out.Error.Kind != "file" || out.Error.Message != "save output: "+test.want || out.Exec != nil {
				t.Errorf("%s: Call of a %s that saves to %s = %s, %+v; want %s", test.about, kind, test.path, out.Kind, out.Error, test.want)
			}
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were sent whose answer had no place to go", n)
	}
	for _, path := range []string{"other", "folder/results.jsonl"} {
		job := httpJob(srv.URL, saveTo(path))
		check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
	}
	if got := readFile(t, "jobs.yaml"); got != "jobs" {
		t.Errorf("jobs.yaml holds %q", got)
	}
}
