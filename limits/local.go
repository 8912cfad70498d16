package limits

import (
	"context"
	"sync"
	"time"
)

// Local is a [Coordinator] within this process: a [State] behind a mutex. It
// shares nothing with other processes.
type Local struct {
	now func() Time

	mu    sync.Mutex // guards what follows; never held across a wait
	state State
}

// NewLocal returns a coordinator with every permit free and every bucket full.
// Its clock is the wall clock of this moment plus what has elapsed since, so
// that a step of the wall clock moves nothing.
func NewLocal() *Local {
	start := time.Now()
	return NewLocalAt(func() Time { return Time(start.Add(time.Since(start)).UnixMicro()) })
}

// NewLocalAt is [NewLocal] on another clock, which must not step back.
func NewLocalAt(now func() Time) *Local { return &Local{now: now} }

// NewLocalEmpty is [NewLocal] with every bucket empty: for a run that goes on
// where another may have ended this moment.
func NewLocalEmpty() *Local {
	l := NewLocal()
	l.state.Empty = l.now()
	return l
}

// Sync decides the batch at once. It ignores ctx and returns no error.
func (l *Local) Sync(_ context.Context, batch *Batch, reply *Reply) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Read under the mutex: a time from before it could be older than the last
	// decision's.
	l.state.Sync(l.now(), batch, reply)
	return nil
}

// Changed returns nil: nobody else gives anything back.
func (l *Local) Changed() <-chan struct{} { return nil }

// Now returns the time by which Sync decides.
func (l *Local) Now() Time { return l.now() }

// Close does nothing and returns nil.
func (l *Local) Close() error { return nil }
