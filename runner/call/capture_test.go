package call

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

func TestHTTPBigAnswers(t *testing.T) {
	packed := bytes.Repeat([]byte{0x1f, 0x8b, 0, 1}, 1<<18)
	const streamed = 256 << 20
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed)
			return
		}
		for chunk, n := make([]byte, 1<<20), 0; n < streamed; n += len(chunk) {
			w.Write(chunk)
		}
	})
	c := newClient(t, Config{})
	var out Outcome
	job := httpJob(srv.URL + "/packed")
	out = c.Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	if h := out.HTTP; h.Encoding != "base64" || h.Body != base64.StdEncoding.EncodeToString(packed[:64<<10]) ||
		h.BodyBytes != int64(len(packed)) || !h.Truncated {
		t.Errorf("packed: %d characters of %q for %d bytes, truncated %v", len(h.Body), h.Encoding, h.BodyBytes, h.Truncated)
	}
	job = httpJob(srv.URL + "/streamed")
	used := allocated(func() { out = c.Call(t.Context(), Attempt{Job: job}) })
	check(t, job, out, OK, "", false)
	if h := out.HTTP; len(h.Body) != 64<<10 || h.BodyBytes != streamed || !h.Truncated {
		t.Errorf("streamed: %d of %d bytes, truncated %v", len(h.Body), h.BodyBytes, h.Truncated)
	}
	if used > 16<<20 {
		t.Errorf("reading %d MB allocated %d MB", streamed>>20, used>>20)
	}
}

func TestHTTPSave(t *testing.T) {
	var requests atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/ok":
			io.WriteString(w, "secret-value and more")
		case "/missing":
			w.WriteHeader(404)
		case "/short":
			hangUp(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
		}
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{})
	for _, p := range []string{"/missing", "/short"} {
		c.Call(t.Context(), Attempt{Job: httpJob(srv.URL+p, saveTo(path))})
		if got := readFile(t, path); got != "old" {
			t.Errorf("after %s the file holds %q, want it untouched", p, got)
		}
	}
	job := httpJob(srv.URL+"/ok", saveTo(path), inline(4), secrets("secret-value"))
	out := c.Call(t.Context(), Attempt{Job: job})
	check(t, job, out, OK, "", false)
	if got := readFile(t, path); got != "secret-value and more" || out.HTTP.Saved != path || out.HTTP.Body != "***" {
		t.Errorf("saved %q in %q, recorded %q", got, out.HTTP.Saved, out.HTTP.Body)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Stat = %v, %v; want mode 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	job = httpJob(srv.URL+"/ok", saveTo(filepath.Join(dir, "new", "folders", "out")))
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), OK, "", false)
	requests.Store(0)
	job = httpJob(srv.URL+"/ok", saveTo(filepath.Join(path, "out"))) // in a file
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), Broken, "file", false)
	if requests.Load() != 0 {
		t.Error("a request was sent whose answer had no place to go")
	}
}

func TestShow(t *testing.T) {
	tests := []struct {
		name      string
		text      string
		inline    int64
		want      string
		encoding  string
		truncated bool
	}{
		{"all of it", "héllo", 100, "héllo", "", false},
		{"exactly all of it", "hé", 3, "hé", "", false},
		{"a cut within a character moves before it", "hé!", 2, "h", "", true},
		{"a cut behind a character does not", "hé!", 3, "hé", "", true},
		{"nothing", "abc", 0, "", "", true},
		{"no text", "\xff\x00\xfeA", 100, "/wD+QQ==", "base64", false},
		{"a broken last character is kept as it is", "h\xc3", 100, "aMM=", "base64", false},
		{"NUL is text", "a\x00b", 100, "a\x00b", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &capture{keep: int(tt.inline)}
			io.WriteString(c, tt.text)
			want := shown{tt.want, tt.encoding, tt.truncated, false}
			if got := c.show(redactorOf(), tt.inline); got != want {
				t.Errorf("show(%q, %d) = %+v, want %+v", tt.text, tt.inline, got, want)
			}
		})
	}
}
