package results

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A limit on the size of files stands for a full disk: the system takes a part
// of what is written, then refuses.
func TestAFullDiskLeavesWholeLines(t *testing.T) {
	record := func(id string) *Record { return &Record{ID: id, Host: strings.Repeat("x", 1000)} }
	size := uint64(len(appendRecord(nil, record("a"))))
	limitFiles(t, 2*size+size/2)

	path := filepath.Join(t.TempDir(), "out.jsonl")
	f, err := Open(path, Create)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Append(record("a")); err != nil {
		t.Fatal(err)
	}
	var part *Partial
	if err := f.Append(record("b"), record("c")); !errors.Is(err, unix.EFBIG) || !errors.As(err, &part) || part.Records != 1 {
		t.Errorf("Append over the limit = %+v, want %v after one record", err, unix.EFBIG)
	}
	if err := f.Append(&Record{ID: "d"}); !errors.Is(err, unix.EFBIG) {
		t.Errorf("Append after an error = %v, want the first error, %v", err, unix.EFBIG)
	}
	mustClose(t, f)
	if diff := cmp.Diff([]string{"a", "b"}, lines(strings.NewReader(content(t, path)))); diff != "" {
		t.Errorf("the file holds (-want +got):\n%s", diff)
	}
}

func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
		signal.Reset(unix.SIGXFSZ)
	})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
}

func TestADeviceIsWrittenToAsItIs(t *testing.T) {
	for _, mode := range []Mode{Create, Overwrite, Resume} {
		first, err := Open(os.DevNull, mode)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open(os.DevNull, mode)
		if err != nil {
			t.Fatalf("a second Open of a device: %v", err)
		}
		if err := first.Append(&Record{}); err != nil {
			t.Error(err)
		}
		mustClose(t, first)
		mustClose(t, second)
	}
	f, err := Open("/dev/full", Create)
	if err != nil {
		t.Skip(err)
	}
	if err := f.Append(&Record{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Append to a full device = %v, want %v", err, unix.ENOSPC)
	}
	mustClose(t, f)
}

// A line that was cut off must not spoil the one behind it.
func TestNothingIsListedBehindACutOffLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	f := NewInflight(path)
	if err := f.Add(&Record{Run: "r", ID: "a"}); err != nil {
		t.Fatal(err)
	}
	limitFiles(t, uint64(len(content(t, path+".inflight")))+10)
	for range 2 {
		if err := f.Add(&Record{Run: "r", ID: "b"}); !errors.Is(err, unix.EFBIG) {
			t.Errorf("Add over the limit = %v, want %v", err, unix.EFBIG)
		}
	}
	limitFiles(t, unix.RLIM_INFINITY)
	if err := f.Add(&Record{Run: "r", ID: "c"}); !errors.Is(err, unix.EFBIG) {
		t.Errorf("Add after an error = %v, want the first error, %v", err, unix.EFBIG)
	}
	if got, err := f.Read(); err != nil || len(got) != 1 || got[0].ID != "a" {
		t.Errorf("Read = %v, %v; want what was listed whole", got, err)
	}
}
