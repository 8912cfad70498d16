package call

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/results"
)

// errKill is the cause of a context that ended with Close.
var errKill = errors.New("killed")

// errTimeout is the cause of a context that ended with the job's timeout.
var errTimeout = errors.New("timeout")

// Config says how a [Client] works. The zero Config is usable.
type Config struct {
	// Concurrency is how many attempts may be under way at once, and so how many
	// idle connections are worth keeping; 0 means 16. It is not enforced here.
	Concurrency int
	// Grace is how long a command may take between TERM and KILL; 0 means 3 s.
	Grace time.Duration
	// Coordinator and Held are told to commands: a name for who keeps the limits, empty
	// if nobody else can share it, and the keys (see [KeyWord]) that the job holds whose
	// command this process is.
	Coordinator string
	Held        []string
	// HideQuery names further query keys whose values are never recorded.
	HideQuery []string
	// Keep are paths of files that no job may replace with its output, whether or
	// not they exist yet.
	Keep []string
}

// KeyWord spells a key as commands find it among the words of AGENTLIMIT_JOB_KEYS.
func KeyWord(k limits.Key) string { return strings.ReplaceAll(k.String(), " ", "%20") }

// Client makes attempts of requests and of commands. It keeps connections to
// reuse them; Close it when no call is under way any more, or to end what is.
type Client struct {
	cfg     Config
	hide    hider
	environ []string // what commands inherit

	life context.Context // ends with Close
	end  context.CancelFunc

	idle     pool
	stamps   sync.Map   // weak.Pointer[jobspec.Job] -> stamp of its body file
	mu       sync.Mutex // guards what follows
	tls      map[jobspec.TLS]*tls.Config
	feedback *Temp // for what commands say; nil: none
	commands int64 // so far
}

var _ Caller = (*Client)(nil)

// New returns a client that is ready for use.
func New(cfg Config) *Client {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 16
	}
	if cfg.Grace == 0 {
		cfg.Grace = 3 * time.Second
	}
	c := &Client{cfg: cfg, hide: newHider(cfg.HideQuery), tls: make(map[jobspec.TLS]*tls.Config)}
	c.idle.max = cfg.Concurrency
	c.life, c.end = context.WithCancel(context.Background())
	// This process may be a job's command itself; its commands are of other jobs.
	c.environ = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AGENTLIMIT_JOB_") })
	return c
}

// Close ends at once every attempt under way, those in their grace too: a command gets
// KILL without TERM before it. It closes idle connections. Attempts made later are cancelled.
// It does not wait for the calls to return. It may be called more than once.
func (c *Client) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.close()
	if c.feedback != nil {
		c.feedback.Remove()
	}
}

// Call makes one attempt; see [Caller]. The job's timeout counts from here.
func (c *Client) Call(parent context.Context, a Attempt) Outcome {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	t := &attempt{Attempt: a, redactor: newRedactor(a, c.hide), life: c.life}
	t.out = Outcome{Kind: OK}
	if c.life.Err() != nil {
		cancel(errKill)
	}
	defer context.AfterFunc(c.life, func() { cancel(errKill) })()
	if limit := a.Job.Timeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer stop()
	}
	if err := c.try(ctx, t); err != nil {
		f := classify(ctx, err, t)
		t.out.Kind = f.kind
		t.out.Error = &results.Error{Kind: f.code, Message: t.line(f.Error())}
	}
	return t.out
}

// An attempt is an [Attempt] under way.
type attempt struct {
	Attempt
	*redactor
	life context.Context // once it is over the attempt must end at once, grace or not
	out  Outcome
}

func (t *attempt) hurry() bool { return t.life.Err() != nil }

func (c *Client) try(ctx context.Context, t *attempt) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	save, err := c.saveFile(t.Job.Output.Save)
	if err != nil {
		return cannot("file", "save output", err)
	}
	if save != nil {
		defer os.Remove(save.Name()) // unless it was committed
		defer save.Close()
	}
	if t.Job.HTTP != nil {
		return c.request(ctx, t, t.newCapture(save, t.Stdout))
	}
	return c.run(ctx, t, t.newCapture(save, t.Stdout))
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
