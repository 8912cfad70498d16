package call

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
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
	hide        *regexp.Regexp
	environ     []string // what commands inherit

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
		hide:        hidePattern(cfg.HideQuery),
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
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if c.life.Err() != nil {
		cancel(ErrKill)
	}
	defer context.AfterFunc(c.life, func() { cancel(ErrKill) })()
	if t := a.Job.Timeout; t > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, t, errTimeout)
		defer stop()
	}
	out := Outcome{Kind: OK, Started: time.Now()}
	red := newRedactor(a.Job, c.hide)
	if err := c.attempt(ctx, parent, a, red, &out); err != nil {
		f := classify(ctx, err, out.Sent, a.Job.Timeout)
		out.Kind, out.Error = f.kind, f.record(red)
	}
	out.Ended = time.Now()
	return out
}

func (c *Client) attempt(ctx, parent context.Context, a Attempt, red *redactor, out *Outcome) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.Job.HTTP != nil:
		return c.request(ctx, a, red, out)
	default:
		hurry := func() bool {
			return c.life.Err() != nil || errors.Is(context.Cause(parent), ErrKill)
		}
		return c.run(ctx, hurry, a, red, out)
	}
}

// isJobVariable reports whether a variable tells about a job that this process
// is itself a command of. Commands get their own.
func isJobVariable(env string) bool { return strings.HasPrefix(env, "AGENTLIMIT_JOB_") }
