package call

import (
	"errors"
	"os"
	"time"
)

// linger is how long after its end a command's output may still come from what
// it left behind, such as a process substitution of its shell.
const linger = 100 * time.Millisecond

// A stream is one output of a command, read through a pipe while it runs, so
// that no amount of it takes disk or memory. A process left in the background
// may hold the pipe open for ever: after the command has ended the stream is
// read for a short while longer, and then whatever the pipe still holds, which
// includes all that the command wrote itself. After that the pipe is closed.
type stream struct {
	*capture
	r    *os.File
	done chan struct{} // closed when the stream has been read
}

func (s *stream) read() {
	defer close(s.done)
	defer s.r.Close()
	if err := s.readAll(s.r); errors.Is(err, os.ErrDeadlineExceeded) {
		s.drain()
	}
}

// finish is called when the command has ended, and returns when all is read. It
// leaves out the short while if now.
func (s *stream) finish(now bool) {
	end := time.Now()
	if !now {
		end = end.Add(linger)
	}
	if s.r.SetReadDeadline(end) == nil {
		<-s.done
		return
	}
	// Pipes without deadlines: not on Unix.
	select {
	case <-s.done:
	case <-time.After(linger):
		s.r.Close()
	}
}
