package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
)

// Mode says what [Open] does with a file that is there already.
type Mode uint8

// The modes of opening.
const (
	Create    Mode = iota // refuse it, unless it is empty
	Overwrite             // empty it, at [File.Empty]
	Resume                // append to it
)

// What Open refuses, besides what the system does.
var (
	ErrExists = errors.New("exists already; --resume goes on with it, --overwrite starts it anew")
	ErrInUse  = errors.New("in use by another run")
)

// File is a results file that one run holds: a kernel lock keeps other runs out
// until it is closed or the process is gone, however it ended, so that nothing
// is ever left to clean up. It is for one goroutine at a time.
type File struct {
	*Writer
	// Torn is how many bytes of an unfinished last line were cut off by Resume.
	Torn int64

	tail *tail
}

// Open takes a results file for one run: it creates it if it is not there, locks
// it, and only then looks at mode. A file that another run holds is left as it
// is, with [ErrInUse]; one with content is refused by Create, with [ErrExists].
// One that starts empty gets the mode 0600. Resume sets the last line right: one
// cut off in the middle is taken away, a whole one without its newline gets it;
// what is not a results file is refused. A device or pipe is written to as it
// is, in every mode, without a lock.
func Open(path string, mode Mode) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("results file %q: %w", path, reason(err))
	}
	if err := f.prepare(mode); err != nil {
		f.tail.file.Close() // nothing was written
		return nil, fmt.Errorf("results file %q: %w", path, reason(err))
	}
	return f, nil
}

func open(path string) (*File, error) {
	flags := os.O_RDWR | os.O_CREATE
	info, err := os.Stat(path)
	stream := err == nil && !info.Mode().IsRegular()
	if stream {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	t := &tail{file: file}
	if stream {
		return &File{Writer: NewWriter(file), tail: t}, nil
	}
	return &File{Writer: NewWriter(t), tail: t}, nil
}

// prepare locks a regular file and makes it ready for the first record.
func (f *File) prepare(mode Mode) error {
	file := f.tail.file
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := lock(file); err != nil {
		return err
	}
	// Only the holder of the lock knows the size for sure.
	if info, err = file.Stat(); err != nil {
		return err
	}
	switch size := info.Size(); {
	case size > 0 && mode == Create:
		return ErrExists
	case size > 0 && mode == Resume:
		if f.Torn, err = f.tail.mend(size); err != nil {
			return err
		}
		_, err = file.Seek(f.tail.end, io.SeekStart)
		return err
	}
	file.Chmod(0o600) // where the file system has modes: it was made elsewhere
	f.tail.empty = sync.OnceValue(func() error { return file.Truncate(0) })
	return nil
}

// Empty takes away what the file held when Create or Overwrite opened it, once. The
// first record does so, too; until then a run that comes to nothing leaves it as it
// was. It may be called by any goroutine.
func (f *File) Empty() error {
	if f.tail.empty == nil {
		return nil
	}
	if err := f.tail.empty(); err != nil {
		return fmt.Errorf("empty results: %w", err)
	}
	return nil
}

// reason is err in a user's words, the path left to the caller.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("its folder does not exist")
		}
		return path.Err
	}
	return err
}

// Records reads what the file holds at the time of the call; see [Read].
func (f *File) Records() iter.Seq2[Record, error] {
	return Read(io.NewSectionReader(f.tail.file, 0, f.tail.end))
}

// Sync makes what was written safe from a crash of the machine.
func (f *File) Sync() error {
	if f.tail.end == 0 {
		return nil
	}
	if err := f.tail.file.Sync(); err != nil {
		return fmt.Errorf("sync results: %w", err)
	}
	return nil
}

// Close is [File.Sync], and lets the file go.
func (f *File) Close() error {
	synced, closed := f.Sync(), f.tail.file.Close()
	if closed != nil {
		closed = fmt.Errorf("close results: %w", closed)
	}
	return errors.Join(synced, closed)
}

// SameFile returns the first of others that is the same file as path, through whatever
// link or spelling, or would be if it existed; "" if none is.
func SameFile(path string, others ...string) string {
	for _, other := range others {
		if same(path, other) || filepath.Base(path) == filepath.Base(other) && same(filepath.Dir(path), filepath.Dir(other)) {
			return other
		}
	}
	return ""
}

// same reports whether what is at two paths exists and is the same.
func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
