package results

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// lines reads everything: ids of records, and what the errors say.
func lines(r io.Reader) []string {
	var got []string
	for record, err := range Read(r) {
		switch {
		case errors.Is(err, ErrTorn):
			got = append(got, "torn: "+err.Error())
		case err != nil:
			ours, _, _ := strings.Cut(err.Error(), ": json") // the parser's words may change
			got = append(got, "bad: "+ours)
		default:
			got = append(got, record.ID)
		}
	}
	return got
}

func TestRead(t *testing.T) {
	const a, b = `{"v":1,"id":"a"}`, `{"v":1,"id":"b"}`
	long := `{"v":1,"id":"` + strings.Repeat("x", 5<<20) + `"}`
	tests := []struct {
		name, in string
		want     []string
	}{
		{"an empty file holds nothing", "", nil},
		{"a file of one newline holds nothing", "\n", nil},
		{"whole lines", a + "\n" + b + "\n", []string{"a", "b"}},
		{"a last line that lacks only its newline is whole", a + "\n" + b, []string{"a", "b"}},
		{"a last line cut off in the middle is told apart", a + "\n" + b + "\n" + `{"id":"c","stat`, []string{"a", "b", "torn: read results: line 3: cut off in the middle"}},
		{"a last line cut off within a character", a + "\n{\"v\":1,\"id\":\"\xc3", []string{"a", "torn: read results: line 2: cut off in the middle"}},
		{"what a crash of the machine may leave", a + "\n\x00\x00\x00", []string{"a", "torn: read results: line 2: cut off in the middle"}},
		{"line ends of other systems and blank lines", a + "\r\n\r\n\n" + b + "\r\n", []string{"a", "b"}},
		{"a bad line in the middle is named, and the next is read", a + "\n" + `{"v":1,"id` + "\n" + b + "\n", []string{"a", "bad: read results: line 2: want a record", "b"}},
		{"a record of another version is refused, at the end too", `{"v":2,"id":"a"}`, []string{"bad: read results: line 1: a record of version 2: want version 1"}},
		{"a line that is JSON but no record", `null` + "\n", []string{"bad: read results: line 1: a record of version 0: want version 1"}},
		{"fields that are not known are passed over", `{"v":1,"new":[{}],"id":"a"}`, []string{"a"}},
		{"a line of 5 MB", long + "\n" + a + "\n", []string{strings.Repeat("x", 5<<20), "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(strings.NewReader(tt.in))); diff != "" {
				t.Errorf("Read (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadLongLines has a line that is longer than any record, which is not kept.
func TestReadLongLines(t *testing.T) {
	const a = `{"v":1,"id":"a"}` + "\n"
	in := io.MultiReader(strings.NewReader(a+`{"v":1,"id":"`), io.LimitReader(xs{}, 1<<30), strings.NewReader("\"}\n"+a))
	want := []string{"a", "bad: read results: line 2: a line of over 128 MiB: want a record", "a"}
	if diff := cmp.Diff(want, lines(in)); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.Sys > 400e6 {
		t.Errorf("Read took %d MB of memory", m.Sys/1e6)
	}
}

// xs is text without end.
type xs struct{}

// Read fills b.
func (xs) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestReadEndsAtAnError(t *testing.T) {
	in := io.MultiReader(strings.NewReader("{\"v\":1,\"id\":\"a\"}\n{\"v\":1"), iotest.ErrReader(errors.New("disk gone")))
	want := []string{"a", "bad: read results: line 2: disk gone"}
	if diff := cmp.Diff(want, lines(in)); diff != "" {
		t.Errorf("Read of a file whose disk fails (-want +got):\n%s", diff)
	}
}

func TestReadStopsWhenAsked(t *testing.T) {
	in := strings.NewReader(strings.Repeat("{\"v\":1,\"id\":\"a\"}\n", 3))
	n := 0
	for range Read(in) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("Read went on after a break: %d records", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"v\":1,\"id\":\"a\"}\n\n{\"v\":1,\"id\":\"b\",\"stat"))
	f.Add([]byte("{\"v\":2}\r\nnull\n\xff\n"))
	f.Add(appendRecord(appendRecord(nil, full()), answer()))
	f.Fuzz(func(t *testing.T, data []byte) {
		count := 0
		torn := false
		for r, err := range Read(bytes.NewReader(data)) {
			if count++; torn {
				t.Errorf("Read went on behind a torn line")
			}
			if torn = errors.Is(err, ErrTorn); err != nil || !writable(&r) {
				continue
			}
			again := slices.Collect(records(appendRecord(nil, &r)))
			if diff := cmp.Diff([]Record{r}, again, sameRecord); diff != "" {
				t.Errorf("a record that was read and written again (-before +after):\n%s", diff)
			}
		}
		if most := bytes.Count(data, []byte("\n")) + 1; count > most {
			t.Errorf("Read made %d items of %d lines", count, most)
		}
	})
}

// writable reports whether all times of a record have a year of four digits: a
// zone may push one out, but no run does.
func writable(r *Record) bool {
	times := []Time{r.Deadline, r.QueuedAt, r.EndedAt}
	for _, a := range r.Attempts {
		times = append(times, a.AdmittedAt, a.StartedAt, a.EndedAt)
		if a.Hint != nil {
			times = append(times, a.Hint.Until)
		}
	}
	if r.Deferred != nil {
		times = append(times, r.Deferred.Deadline, r.Deferred.RetryAt)
	}
	return !slices.ContainsFunc(times, func(t Time) bool { return t.UTC().Year() < 0 || t.UTC().Year() > 9999 })
}

func records(data []byte) func(func(Record) bool) {
	return func(yield func(Record) bool) {
		for r, err := range Read(bytes.NewReader(data)) {
			if err != nil || !yield(r) {
				return
			}
		}
	}
}
