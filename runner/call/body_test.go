package call

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentlimit/jobspec"

	"github.com/google/go-cmp/cmp"
)

func TestHTTPBodyWholeEachTime(t *testing.T) {
	type sent struct {
		length int64
		sum    [32]byte
		header string
	}
	var seen []sent
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, sent{r.ContentLength, sha256.Sum256(b), fmt.Sprint(r.Header)})
		if len(seen)%2 == 1 {
			w.WriteHeader(503)
		}
	})
	path := filepath.Join(t.TempDir(), "body")
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10/16)
	if err := os.WriteFile(path, big, 0o600); err != nil {
		t.Fatal(err)
	}
	inlineBody := func(j *jobspec.Job) { j.HTTP.Body = []byte("twenty bytes of text") }
	fileBody := func(j *jobspec.Job) { j.HTTP.BodyFile = path }
	c := newClient(t, Config{})
	for _, edit := range []func(*jobspec.Job){inlineBody, fileBody} {
		seen = nil
		job := httpJob(srv.URL, method("POST"), edit)
		check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: 1}), Answered, "status", false)
		check(t, job, c.Call(t.Context(), Attempt{Job: job, Number: 2}), OK, "", false)
		want := sent{int64(len(big)), sha256.Sum256(big), seen[0].header}
		if job.HTTP.Body != nil {
			want.length, want.sum = int64(len(job.HTTP.Body)), sha256.Sum256(job.HTTP.Body)
		}
		if diff := cmp.Diff([]sent{want, want}, seen, cmp.AllowUnexported(sent{})); diff != "" {
			t.Errorf("two attempts (-want +got):\n%s", diff)
		}
	}
}

func TestHTTPBodyFileChanged(t *testing.T) {
	changes := []struct {
		name   string
		change func(path string) error
	}{
		{"is gone", os.Remove},
		{"has grown", func(path string) error { return os.WriteFile(path, []byte("longer"), 0o600) }},
		{"was written again", func(path string) error { return os.WriteFile(path, []byte("beta"), 0o600) }},
		{"was replaced", func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("beta"), 0o600), os.Rename(path+"2", path))
		}},
	}
	for _, tt := range changes {
		t.Run("the file "+tt.name, func(t *testing.T) {
			requests := 0
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) { requests++; w.WriteHeader(503) })
			path := filepath.Join(t.TempDir(), "body")
			old := time.Now().Add(-time.Hour)
			if err := errors.Join(os.WriteFile(path, []byte("alfa"), 0o600), os.Chtimes(path, old, old)); err != nil {
				t.Fatal(err)
			}
			job := httpJob(srv.URL, method("POST"), func(j *jobspec.Job) { j.HTTP.BodyFile = path })
			c := newClient(t, Config{})
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), Answered, "status", false)
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			check(t, job, c.Call(t.Context(), Attempt{Job: job}), Broken, "file", false)
			if requests != 1 {
				t.Errorf("%d requests, want 1", requests)
			}
		})
	}
}

func TestHTTPBodyFileChangesWhileSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "body")
	size := 8 << 20
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := make(chan bool, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 1<<10)
		os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600)
		_, err := io.Copy(io.Discard, r.Body)
		whole <- err == nil
	})
	job := httpJob(srv.URL, method("POST"), func(j *jobspec.Job) { j.HTTP.BodyFile = path })
	check(t, job, newClient(t, Config{}).Call(t.Context(), Attempt{Job: job}), Broken, "file", true)
	if <-whole {
		t.Error("the server got a mixed body whole")
	}
}

// TestBodyFileOfARedirect has the file change between a call and its redirect.
func TestBodyFileOfARedirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "body")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got += n
	}))
	defer server.Close()
	job := func(path string) *jobspec.Job {
		return &jobspec.Job{ID: "j", HTTP: &jobspec.HTTP{Method: "POST", URL: server.URL, BodyFile: path}}
	}
	c := New(Config{})
	defer c.Close()
	first, turned := job(path), job(path)
	write("one")
	if out := c.Call(t.Context(), Attempt{Job: first}); out.Kind != Answered { // nothing is expected
		t.Fatalf("the call: %+v", out)
	}
	get := job("")
	get.HTTP.Method = "GET"
	if out := c.Call(t.Context(), Attempt{Job: get, From: first}); out.Kind != Answered || got != 3 {
		t.Errorf("a redirect to a GET: %s, with %d bytes sent in all, want none with it", out.Kind, got)
	}
	write("other")
	if out := c.Call(t.Context(), Attempt{Job: turned, From: first}); out.Kind != Broken || out.Error.Kind != "file" {
		t.Errorf("its redirect, after the file has changed: %s, %+v; want it broken by the file", out.Kind, out.Error)
	}
}
