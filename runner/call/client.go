package call

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentlimit/runner/results"
)

// ErrKill, as the cause of a cancelled context, ends an attempt at once: a
// command gets KILL without TERM before it.
var ErrKill = errors.New("killed")

// errTimeout is the cause of a context that ended with the job's timeout.
var errTimeout = errors.New("timeout")

// Config says how a [Client] works. The zero Config is usable.
type Config struct {
	// Concurrency is how many attempts may be under way at once, and so how many
	// idle connections are worth keeping; 0 means 16. It is not enforced here.
	Concurrency int
	// Grace is how long a command may take between TERM and KILL; 0 means 3 s.
	Grace time.Duration
	// HideQuery names further query keys whose values are never recorded.
	HideQuery []string
}

// Client makes attempts of requests and of commands. It keeps connections to
// reuse them; Close it when no call is under way any more, or to end what is.
type Client struct {
	concurrency int
	grace       time.Duration
	hide        map[string]bool // query keys
	environ     []string        // what commands inherit

	life context.Context // ends with Close
	end  context.CancelFunc

	stamps     sync.Map // weak.Pointer[jobspec.Job] -> os.FileInfo of its body file
	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

var _ Caller = (*Client)(nil)

// New returns a client that is ready for use.
func New(cfg Config) *Client {
	life, end := context.WithCancel(context.Background())
	c := &Client{
		concurrency: cfg.Concurrency,
		grace:       cfg.Grace,
		hide:        hideKeys(cfg.HideQuery),
		environ:     slices.DeleteFunc(os.Environ(), isJobVariable),
		life:        life,
		end:         end,
		transports:  make(map[transportKey]*http.Transport),
	}
	if c.concurrency == 0 {
		c.concurrency = 16
	}
	if c.grace == 0 {
		c.grace = 3 * time.Second
	}
	return c
}

// Close ends at once, as [ErrKill] does, every attempt under way, those in their
// grace too, and closes idle connections. Attempts made later are cancelled.
// It does not wait for the calls to return. It may be called more than once.
func (c *Client) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

// Call makes one attempt; see [Caller]. The job's timeout counts from here.
func (c *Client) Call(parent context.Context, a Attempt) Outcome {
	t := &attempt{Attempt: a, out: Outcome{Kind: OK, Started: time.Now()}}
	t.hurry = func() bool { return c.life.Err() != nil || errors.Is(context.Cause(parent), ErrKill) }
	t.redactor = newRedactor(a.Job, c.hide)
	ctx, cancel := context.WithCancelCause(parent)
	t.cancel = cancel
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(ErrKill) })()
	if limit := a.Job.Timeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer stop()
	}
	if err := c.try(ctx, t); err != nil {
		f := classify(ctx, err, t)
		t.out.Kind = f.kind
		t.out.Error = &results.Error{Kind: f.code, Message: t.line(f.err.Error())}
	}
	t.out.Ended = time.Now()
	return t.out
}

// An attempt is an [Attempt] under way.
type attempt struct {
	Attempt
	*redactor
	cancel context.CancelCauseFunc
	hurry  func() bool // it must end at once, grace or not
	out    Outcome
}

func (c *Client) try(ctx context.Context, t *attempt) error {
	switch {
	case c.life.Err() != nil:
		return fail(Cancelled, "cancelled", "cancelled: %w", ErrKill)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.Job.HTTP != nil:
		return c.request(ctx, t)
	}
	return c.run(ctx, t)
}

// sending calls a.Sending, if there is one.
func (a *Attempt) sending() error {
	if a.Sending != nil {
		if err := a.Sending(); err != nil {
			return &failure{Broken, "unsent", err}
		}
	}
	return nil
}

// isJobVariable reports whether a variable tells about a job that this process
// is itself a command of. Commands get their own.
func isJobVariable(env string) bool { return strings.HasPrefix(env, "AGENTLIMIT_JOB_") }
