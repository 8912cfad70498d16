package redis

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

// Options are what [Open] may be told. The zero Options are ready for use.
type Options struct {
	Say func(message string) // told what a user should know; may be nil
}

// timing is how long things take. Others may have what a member holds when it was
// not heard of for ttl; it speaks every ttl/4. While an epoch is younger than learn
// nothing starts.
type timing struct {
	ttl, learn time.Duration
	at         limits.Time // decide at this moment of a test; zero: by Redis's clock
}

var usual = timing{ttl: 10 * time.Second, learn: 3 * time.Second}

var (
	//go:embed rule.lua
	rule string
	//go:embed step.lua
	step string
)

// Redis is one process's share of a namespace. It is safe for use by many goroutines.
type Redis struct {
	client redis.UniversalClient
	script *redis.Script
	space  string // the namespace's hash tag, which every key of it begins with
	name   string // of this member
	say    func(string)
	timing timing
	clock  clock

	turn    chan struct{} // holds a value while somebody speaks to Redis
	changed chan struct{}
	closed  chan struct{}
	keeping sync.WaitGroup
	once    sync.Once

	// What follows is guarded by turn.
	seq     int64 // of the last batch
	epoch   int64 // that Redis was in
	held    map[limits.ClaimID]*lane
	waiting map[limits.ClaimID]bool // refused, and not withdrawn
	lost    bool                    // Redis did not answer
	heard   time.Time               // when the last step was sent that was answered
}

// Open makes this process a member of the namespace that url names, and waits until
// Redis has answered. The url is as go-redis takes it: redis://, rediss://, a Sentinel
// with ?master_name=, a Cluster with ?addr=; ?namespace=NAME sets apart what is not to
// be shared. No error says more of the url than where it leads.
func Open(ctx context.Context, url string, opts Options) (*Redis, error) {
	return open(ctx, url, opts, usual)
}

func open(ctx context.Context, url string, opts Options, t timing) (*Redis, error) {
	r, err := newRedis(url, opts, t)
	if err != nil {
		return nil, fmt.Errorf("open coordinator redis: %w", err)
	}
	if _, err := r.speak(ctx, &request{Op: "beat", Join: true}); err != nil {
		if lost := new(limits.Lost); errors.As(err, &lost) {
			err = lost.Err // nothing was held yet
		}
		return nil, errors.Join(fmt.Errorf("open coordinator redis: %w", err), r.client.Close())
	}
	r.warnOfEviction(ctx)
	wakes := r.client.Subscribe(context.WithoutCancel(ctx), r.space+":wake:"+r.name)
	r.keeping.Go(func() { r.keep(wakes) })
	return r, nil
}

// newRedis returns a member that Redis does not know yet.
func newRedis(url string, opts Options, t timing) (*Redis, error) {
	client, space, err := connect(url)
	if err != nil {
		return nil, err
	}
	if opts.Say == nil {
		opts.Say = func(string) {}
	}
	return &Redis{
		client: client, script: redis.NewScript(rule + step), space: space, name: newName(), say: opts.Say, timing: t,
		clock: clock{start: time.Now()}, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		closed: make(chan struct{}), held: make(map[limits.ClaimID]*lane), waiting: make(map[limits.ClaimID]bool),
	}, nil
}

// newName names a member: its machine and process, and what no other of those had.
func newName() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	host, _ := os.Hostname()
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(id[:])
}

// Sync decides the batch in Redis, in one step. If Redis does not answer, the error is
// a [*limits.Lost], after some seconds at most. Until it returns, other calls wait;
// ctx can end that, and the call itself only by its deadline.
func (r *Redis) Sync(ctx context.Context, batch *limits.Batch, reply *limits.Reply) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return os.ErrClosed
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.seq++
	q := newRequest(batch)
	q.Seq = r.seq
	answer, err := r.speak(ctx, q)
	if err != nil {
		return err
	}
	if err := answer.read(batch, reply); err != nil {
		return err
	}
	r.remember(q, batch, reply)
	reply.Until = r.leaseEnd()
	return nil
}

// speak has one step done, and joins first if Redis does not know what this member
// holds. The caller has the turn, or the Redis for itself.
func (r *Redis) speak(ctx context.Context, q *request) (*answer, error) {
	q.Member, q.TTL, q.Learn, q.At = r.name, r.timing.ttl.Microseconds(), r.timing.learn.Microseconds(), r.timing.at
	for {
		q.Epoch = r.epoch
		sent := time.Now()
		value, err := r.script.Run(ctx, r.client, []string{r.space}, q).Slice()
		if err == nil {
			var a *answer
			if a, err = newAnswer(value); err == nil {
				r.clock.set(sent, time.Now(), a.now)
				r.heard, r.lost = sent, false
				r.noteEpoch(a)
				if a.status != "join" {
					return a, nil
				}
				q.Join, q.Held = true, r.holdings()
				continue
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.lost = true
		return nil, &limits.Lost{Until: r.leaseEnd(), Err: err}
	}
}

// leaseEnd is when Redis forgets this member if it hears nothing more.
func (r *Redis) leaseEnd() limits.Time { return r.clock.at(r.heard.Add(r.timing.ttl)) }

// noteEpoch says so if an epoch has begun since the last answer, and this process has
// to wait.
func (r *Redis) noteEpoch(a *answer) {
	if a.epoch == r.epoch {
		if a.status == "join" {
			r.say("this process was not heard of by redis for too long: others may have used what it holds")
		}
		return
	}
	r.epoch = a.epoch
	if wait := a.learn.Sub(a.now); wait > 0 {
		r.say(fmt.Sprintf("redis knows nothing of what is under way (it is new, restarted or was emptied): nothing starts for %v, while others tell it", wait.Round(time.Millisecond)))
	}
}

// holdings returns what this member was granted, as it takes it up again.
func (r *Redis) holdings() []holding {
	all := make([]holding, 0, len(r.held))
	for id, l := range r.held {
		all = append(all, holding{id, l.Keys, l.Costs, l.limits})
	}
	return all
}

// remember notes what the member holds and waits for now.
func (r *Redis) remember(q *request, batch *limits.Batch, reply *limits.Reply) {
	for _, ids := range [][]limits.ClaimID{batch.Releases, batch.Refunds, batch.Withdrawn} {
		for _, id := range ids {
			delete(r.held, id)
			delete(r.waiting, id)
		}
	}
	for i, v := range reply.Verdicts {
		c := &batch.Claims[i]
		if v.Cause == limits.Granted {
			r.held[c.ID] = q.Lanes[q.Claims[i].Lane-1]
			delete(r.waiting, c.ID)
		} else if c.Behind == 0 || reply.Verdicts[c.Behind-1].Cause == limits.Granted {
			r.waiting[c.ID] = true
		}
	}
}

// Changed receives a value when this member was woken, when Redis is back, and every
// so often while a claim waits.
func (r *Redis) Changed() <-chan struct{} { return r.changed }

// Now returns what Redis's clock shows, as far as its answers tell: never more.
func (r *Redis) Now() limits.Time { return r.clock.at(time.Now()) }

// Close gives back what the member holds. If Redis does not answer, it comes back when
// the lease ends. The second Close does nothing.
func (r *Redis) Close() (err error) {
	r.once.Do(func() {
		close(r.closed)
		r.keeping.Wait()
		r.turn <- struct{}{}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = r.speak(ctx, &request{Op: "leave"}) // or the lease ends by itself
		err = r.client.Close()
	})
	return err
}
