package jobspec_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"agentlimit/jobspec"
)

// pack returns text in the packing that the end of a name says.
func pack(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if strings.HasSuffix(name, ".zst") {
		w, _ = zstd.NewWriter(&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPackedInputs reads each kind of input as it is, packed, in two packed parts,
// and packed without a name that says so: the jobs are the same, of a file and of a
// pipe.
func TestPackedInputs(t *testing.T) {
	const job = `{"http":{"url":"http://h/"}}` + "\r\n\n" + `{"host":"a","exec":{"argv":["é"]}}` + "\n"
	for _, test := range []struct{ what, name, text string }{
		{"lines", "a.jsonl", job},
		{"lines behind a mark", "a.ndjson", "\xef\xbb\xbf" + job},
		{"a document", "a.yaml", "jobs:\n- http: {url: 'http://h/'}\n- exec: {argv: [é]}\n"},
		{"a document in JSON", "a.json", `{"jobs":[{"http":{"url":"http://h/"}}]}`},
	} {
		want := loadAll(t, test.what, jobspec.Options{Files: written(t, map[string]string{test.name: test.text})})
		half := len(test.text) / 2
		for _, ending := range []string{".gz", ".zst"} {
			whole := pack(t, ending, test.text)
			for what, data := range map[string]string{"": whole, " in parts": pack(t, ending, test.text[:half]) + pack(t, ending, test.text[half:])} {
				what = test.what + ending + what
				got := loadAll(t, what, jobspec.Options{Files: written(t, map[string]string{test.name + ending: data})})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-plain +packed):\n%s", what, diff)
				}
				got = loadAll(t, what, jobspec.Options{Files: written(t, map[string]string{"plain-name": data})})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, by its first bytes alone (-plain +packed):\n%s", what, diff)
				}
				got = loadAll(t, what, jobspec.Options{Files: []string{"-"}, Stdin: oneByte{strings.NewReader(data)}})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, from a pipe (-plain +packed):\n%s", what, diff)
				}
			}
		}
	}
}

// TestPaddedGzip has zeros behind the last member, as tapes have, and what is no padding.
func TestPaddedGzip(t *testing.T) {
	const job = `{"http":{"url":"http://h/"}}` + "\n"
	member := pack(t, ".gz", job)
	for _, test := range []struct {
		what, data string
		jobs       int // -1: refused
	}{
		{"one zero", member + "\x00", 1},
		{"a block of zeros", member + strings.Repeat("\x00", 10<<10), 1},
		{"two members, and zeros", member + member + strings.Repeat("\x00", 512), 2},
		{"an empty member between two", member + pack(t, ".gz", "") + member, 2},
		{"a member behind zeros", member + "\x00\x00" + member, -1},
		{"something else", member + "junk", -1},
		{"something else behind zeros", member + strings.Repeat("\x00", 512) + "j", -1},
		{"half a member", member + member[:12], -1},
		{"half of the first", member[:12], -1},
	} {
		for _, stdin := range []bool{false, true} {
			o := jobspec.Options{Files: []string{"-"}, Format: "jsonl", Stdin: oneByte{strings.NewReader(test.data)}}
			if !stdin {
				o = jobspec.Options{Files: written(t, map[string]string{"a.jsonl.gz": test.data})}
			}
			got := 0
			s, err := jobspec.Load(o)
			for err == nil {
				if _, err = s.Source.Next(); err == nil {
					got++
				}
			}
			if s != nil {
				s.Close()
			}
			if refused := err != io.EOF; refused != (test.jobs < 0) || !refused && got != test.jobs {
				t.Errorf("%s (a pipe: %t): %d jobs, %v, want %d", test.what, stdin, got, err, test.jobs)
			}
		}
	}
}

// oneByte brings one byte a read, as a slow pipe may.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// loadAll returns the ids and calls of all jobs.
func loadAll(t *testing.T, what string, o jobspec.Options) (jobs []string) {
	t.Helper()
	s, err := jobspec.Load(o)
	if err != nil {
		t.Fatalf("Load %s = %v", what, err)
	}
	defer s.Close()
	for _, j := range drain(t, s) {
		jobs = append(jobs, fmt.Sprint(j.ID, j.HTTP, j.Exec))
	}
	return jobs
}

func TestPackedRows(t *testing.T) {
	for _, test := range []struct{ kind, name, text string }{
		{"csv", "rows.csv.gz", "a,b\n1,\"x\ny\"\n2,z\n"},
		{"csv", "rows.tsv.zst", "a\tb\n1\tx\n"},
		{"jsonl", "rows.gz", `{"a":1,"b":2}` + "\n"},
	} {
		write(t, map[string]string{test.name: pack(t, test.name, test.text)})
		jobs := loadAll(t, test.name, jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"` + test.kind + `":"` + test.name + `"},"exec":{"argv":["${item:a}","${item:b}"]}}]}`)})
		if len(jobs) == 0 || !strings.Contains(jobs[0], "[1 ") {
			t.Errorf("the jobs of %s are %q", test.name, jobs)
		}
	}
}

// TestPackedAreTakenUpInAnyOrder has a busy host in front of another one, whose jobs
// are found again behind it, and sees that nothing is left in the temporary folder.
func TestPackedAreTakenUpInAnyOrder(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, `{"id":"busy-%d","http":{"url":"http://busy/%d"}}`+"\n", i, i)
	}
	text.WriteString(`{"id":"idle","http":{"url":"http://idle/"}}`)
	files := written(t, map[string]string{"a.jsonl.gz": pack(t, ".gz", text.String())})
	s, err := jobspec.Load(jobspec.Options{Files: files})
	if err != nil || s.Jobs != 5001 {
		t.Fatalf("Load = %v, %v", s, err)
	}
	first, err1 := s.Source.Next()
	second, err2 := s.Source.Next()
	if errors.Join(err1, err2) != nil || first.ID != "busy-0" || second.ID != "idle" {
		t.Errorf("Next = %v, %v (%v, %v), want busy-0 and idle", first, second, err1, err2)
	}
	s.Close()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// TestPackedBombs wants the limits of lines and documents to hold for what comes out,
// before it is all there.
func TestPackedBombs(t *testing.T) {
	document := pack(t, ".zst", strings.Repeat("0", 65<<20))
	line := strings.Repeat("0", 17<<20)
	for _, test := range []struct{ name, data, want string }{
		{"a.jsonl.gz", pack(t, ".gz", line), "a.jsonl.gz:1: a line of over 16 MiB"},
		{"a.jsonl.zst", document, "a.jsonl.zst:1: a line of over 16 MiB"},
		{"a.yaml.zst", document, "a.yaml.zst: a document of over 64 MiB"},
		{"a.json.zst", document, "a.json.zst: a document of over 64 MiB"},
	} {
		_, err := jobspec.Load(jobspec.Options{Files: written(t, map[string]string{test.name: test.data})})
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("Load %s = %v, want %s", test.name, err, test.want)
		}
	}
	s, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Format: "jsonl", Stdin: strings.NewReader(pack(t, ".gz", line+"\n"+`{"exec":{"argv":["a"]}}`))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Source.Next()
	if _, found := errors.AsType[*jobspec.Invalid](err); !found {
		t.Errorf("Next of a long line = %v, want an Invalid", err)
	}
	if j, err := s.Source.Next(); err != nil || j.Exec.Argv[0] != "a" {
		t.Errorf("Next behind a long line = %v, %v", j, err)
	}
}

// TestPackedCutShort wants a file whose end is missing to be refused, and a pipe to
// give no job of half a line.
func TestPackedCutShort(t *testing.T) {
	random := make([]byte, 200<<10)
	for i := range random {
		random[i] = 'a' + byte(i*i*7919>>5)%26
	}
	text := `{"id":"whole","exec":{"argv":["a"]}}` + "\n" + string(random)
	for _, ending := range []string{".gz", ".zst"} {
		data := pack(t, ending, text)
		data = data[:len(data)-9]
		_, err := jobspec.Load(jobspec.Options{Files: written(t, map[string]string{"a.jsonl" + ending: data})})
		if err == nil || !strings.Contains(err.Error(), "read job file: a.jsonl"+ending+": unpack ") {
			t.Errorf("Load of half a file%s = %v", ending, err)
		}
		s, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"lines":"-"},"exec":{"argv":["${item:line}"]}}]}`), Stdin: strings.NewReader(data)})
		if err != nil {
			t.Fatal(err)
		}
		j, err := s.Source.Next()
		if err == nil && len(j.Exec.Argv[0]) < 100 { // the first line
			j, err = s.Source.Next()
		}
		if err == nil || err == io.EOF {
			t.Errorf("Next of half a line%s = %v, %v, want the error of reading", ending, j, err)
		}
	}
}

// TestShortLinesOfPipesDoNotWait wants a line to be a job before the next is there.
func TestShortLinesOfPipesDoNotWait(t *testing.T) {
	for _, line := range []string{"a\n", "(\n", "\x1f\n", "(\xc2\xb5\n"} {
		in, out := io.Pipe()
		s, err := jobspec.Load(jobspec.Options{Document: []byte(`{"jobs":[{"for_each":{"lines":"-"},"exec":{"argv":["${item:line}"]}}]}`), Stdin: in})
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(out, line) // and nothing more
		if j, err := s.Source.Next(); err != nil || j.Exec.Argv[0]+"\n" != line {
			t.Errorf("Next of %q = %v, %v", line, j, err)
		}
		out.Close()
	}
}

// written is write for one file, and returns its name.
func written(t *testing.T, files map[string]string) []string {
	t.Helper()
	write(t, files)
	return slices.Collect(maps.Keys(files))
}

func TestPackedWithoutATemporaryFolder(t *testing.T) {
	files := written(t, map[string]string{"a.jsonl.gz": pack(t, ".gz", "{}")})
	t.Setenv("TMPDIR", "none")
	t.Setenv("TMP", "none")
	if _, err := jobspec.Load(jobspec.Options{Files: files}); err == nil || !strings.HasPrefix(err.Error(), `read job file: unpack "a.jsonl.gz": `) {
		t.Errorf("Load without a temporary folder = %v", err)
	}
}

// TestSkippedFrame has a frame in front that holds no data, as pzstd writes it.
func TestSkippedFrame(t *testing.T) {
	const job = `{"exec":{"argv":["a"]}}` + "\n"
	want := loadAll(t, "plain", jobspec.Options{Files: written(t, map[string]string{"a.jsonl": job})})
	data := "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + pack(t, ".zst", job)
	got := loadAll(t, "packed", jobspec.Options{Files: written(t, map[string]string{"a.jsonl.zst": data})})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("behind a frame to be skipped (-plain +packed):\n%s", diff)
	}
}
