package call

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"weak"

	"agentlimit/jobspec"
)

var errBodyChanged = errors.New("the body file has changed since the first attempt began")

// A fileBody is a file that is sent as a request's body: read from disk each
// time, so that its size costs no memory, and the same bytes each time, or the
// attempt fails. A nil fileBody is none.
type fileBody struct {
	f     *os.File
	first os.FileInfo // as the job's first attempt found it
}

// openBody opens the job's body file, if it has one, and compares it with what the
// first attempt found: the same file, size and time of change.
func (c *Client) openBody(job *jobspec.Job) (*fileBody, error) {
	if job.HTTP.BodyFile == "" {
		return nil, nil
	}
	f, err := openRegular(job.HTTP.BodyFile)
	if err != nil {
		return nil, fileFailure("read body file", err)
	}
	b := &fileBody{f: f}
	info, err := f.Stat()
	if err == nil {
		b.first = c.firstStamp(job, info)
		err = b.check()
	}
	if err != nil {
		f.Close()
		return nil, fileFailure("read body file", err)
	}
	return b, nil
}

// openRegular opens a file to read. Pipes and devices are refused: opening them
// may block, and a second attempt would find something else in them.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	return os.Open(path)
}

// firstStamp returns what the first attempt of job found, which is info if this
// is it. It is forgotten with the job.
func (c *Client) firstStamp(job *jobspec.Job, info os.FileInfo) os.FileInfo {
	key := weak.Make(job)
	first, known := c.stamps.LoadOrStore(key, info)
	if !known {
		runtime.AddCleanup(job, func(key weak.Pointer[jobspec.Job]) { c.stamps.Delete(key) }, key)
	}
	return first.(os.FileInfo)
}

// check fails if the file is no longer what it was.
func (b *fileBody) check() error {
	now, err := b.f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, b.first) || now.Size() != b.first.Size() || !now.ModTime().Equal(b.first.ModTime()) {
		return errBodyChanged
	}
	return nil
}

// attach makes the file the body of req.
func (b *fileBody) attach(req *http.Request) {
	if b.first.Size() == 0 {
		req.Body = http.NoBody
		return
	}
	req.ContentLength = b.first.Size()
	req.GetBody = func() (io.ReadCloser, error) { // for a second connection, unsent
		return io.NopCloser(&fileReader{*io.NewSectionReader(b.f, 0, b.first.Size()), b}), nil
	}
	req.Body, _ = req.GetBody()
}

func (b *fileBody) close() {
	if b != nil {
		b.f.Close()
	}
}

// A fileReader hands out the last bytes only if the file has not changed while
// it was read, so that the server never gets a mixed body whole.
type fileReader struct {
	io.SectionReader
	body *fileBody
}

func (r *fileReader) Read(p []byte) (int, error) {
	n, err := r.SectionReader.Read(p)
	if at, _ := r.Seek(0, io.SeekCurrent); at == r.Size() || err != nil {
		if changed := r.body.check(); changed != nil {
			return 0, fail(Broken, "file", "read body file: %w", changed)
		}
	}
	return n, err
}
