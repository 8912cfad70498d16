package redis

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"agentlimit/limits"
)

// request is what step.lua is told, as JSON. Names and Limits are those of the keys
// that claims need, in the order in which they come.
type request struct {
	Op     string      `json:"op,omitempty"` // beat, leave; a batch if empty
	Member string      `json:"member"`
	Seq    int64       `json:"seq"`
	Epoch  int64       `json:"epoch"`
	TTL    int64       `json:"ttl"`
	Learn  int64       `json:"learn"`
	At     limits.Time `json:"now,omitempty"`
	Join   bool        `json:"join,omitempty"` // with all that is held
	Held   []claim     `json:"held,omitempty"`

	Releases  []limits.ClaimID `json:"releases,omitempty"`
	Refunds   []limits.ClaimID `json:"refunds,omitempty"`
	Withdrawn []limits.ClaimID `json:"withdrawn,omitempty"`
	Pauses    []pause          `json:"pauses,omitempty"`
	Max       int              `json:"max"`
	Names     []string         `json:"names,omitempty"`
	Limits    []limit          `json:"limits,omitempty"`
	Claims    []claim          `json:"claims,omitempty"`

	index map[limits.Key]int // in Names
}

// MarshalBinary is what go-redis calls.
func (q *request) MarshalBinary() ([]byte, error) { return json.Marshal(q) }

// limit is concurrency, tokens, per and burst.
type limit [4]int64

func limitOf(l limits.Limit) limit { return limit{l.Concurrency, l.Rate.Tokens, l.Rate.Per, l.Burst} }

func (l limit) limit() limits.Limit {
	return limits.Limit{Concurrency: l[0], Rate: limits.Rate{Tokens: l[1], Per: l[2]}, Burst: l[3]}
}

type pause struct {
	Key  string      `json:"key"`
	Till limits.Time `json:"till"`
}

type claim struct {
	ID       limits.ClaimID `json:"id"`
	Keys     []string       `json:"keys"`
	Costs    []int64        `json:"costs"`
	Limits   []limit        `json:"limits,omitempty"` // of what is held only
	Pair     string         `json:"pair,omitempty"`
	Priority int64          `json:"priority,omitempty"`
	Deadline limits.Time    `json:"deadline,omitempty"` // 0 for none
	Since    limits.Time    `json:"since"`
	Seq      int64          `json:"seq"`
	Behind   int            `json:"behind,omitempty"`
}

// most is the largest time that Redis is told: its numbers are doubles.
const most limits.Time = 1<<53 - 1

func newRequest(batch *limits.Batch) *request {
	q := &request{
		Releases: batch.Releases, Refunds: batch.Refunds, Withdrawn: batch.Withdrawn, Max: batch.Max,
		Claims: make([]claim, len(batch.Claims)), index: make(map[limits.Key]int),
	}
	for i := range batch.Claims {
		q.Claims[i] = q.claim(&batch.Claims[i])
	}
	for _, p := range batch.Pauses {
		q.Pauses = append(q.Pauses, pause{p.Key.String(), min(p.Until, most)})
	}
	return q
}

func (q *request) claim(c *limits.Claim) claim {
	out := claim{
		ID: c.ID, Keys: make([]string, len(c.Needs)), Costs: make([]int64, len(c.Needs)),
		Priority: c.Rank.Priority, Since: c.Rank.Since, Seq: c.Rank.Seq, Behind: c.Behind,
	}
	if c.Rank.Deadline < most {
		out.Deadline = max(c.Rank.Deadline, 1)
	}
	for i, n := range c.Needs {
		at, known := q.index[n.Key]
		if !known {
			at = len(q.Names)
			q.index[n.Key] = at
			q.Names, q.Limits = append(q.Names, n.Key.String()), append(q.Limits, limitOf(n.Limit))
		}
		out.Keys[i], out.Costs[i] = q.Names[at], n.Cost
	}
	if c.Pair.Kind == limits.Pair {
		out.Pair = c.Pair.String()
	}
	return out
}

// holding returns the claim at index i as it is told when it is held.
func (q *request) holding(i int) claim {
	c := q.Claims[i]
	held := claim{ID: c.ID, Keys: c.Keys, Costs: c.Costs}
	for _, name := range c.Keys {
		held.Limits = append(held.Limits, q.Limits[slices.Index(q.Names, name)])
	}
	return held
}

// answer is what step.lua answers with.
type answer struct {
	status     string
	now, learn limits.Time
	epoch      int64
	rest       []any
}

var errAnswer = errors.New("the answer of redis is not understood")

func newAnswer(value []any) (*answer, error) {
	if len(value) < 4 {
		return nil, errAnswer
	}
	a := &answer{rest: value[4:]}
	var ok [4]bool
	var now, learn int64
	a.status, ok[0] = value[0].(string)
	now, ok[1] = value[1].(int64)
	a.epoch, ok[2] = value[2].(int64)
	learn, ok[3] = value[3].(int64)
	a.now, a.learn = limits.Time(now), limits.Time(learn)
	if ok != [4]bool{true, true, true, true} {
		return nil, errAnswer
	}
	return a, nil
}

// read fills reply, or returns a [*limits.Conflict].
func (a *answer) read(batch *limits.Batch, reply *limits.Reply) error {
	switch {
	case a.status == "conflict" && len(a.rest) == 1:
		return newConflict(a.rest[0])
	case a.status != "ok" || len(a.rest) != 2:
		return fmt.Errorf("%w: %q", errAnswer, a.status)
	}
	reply.Now, reply.Verdicts, reply.Levels = a.now, reply.Verdicts[:0], reply.Levels[:0]
	in := fields{of: a.rest[0]}
	for i := range batch.Claims {
		reply.Verdicts = append(reply.Verdicts, in.verdict(&batch.Claims[i], reply))
	}
	levels, _ := a.rest[1].([]any)
	for _, level := range levels {
		in.of, in.at = level, 0
		reply.Levels = append(reply.Levels, limits.Level{
			Key: in.key(), Bucket: limits.Bucket{Level: in.int(), Last: in.time()}, Pause: in.time(),
		})
	}
	if in.wrong {
		return errAnswer
	}
	return nil
}

func newConflict(value any) error {
	in := fields{of: value}
	c := &limits.Conflict{Key: in.key(), Member: in.string()}
	c.Theirs, c.Asked = in.limit(), in.limit()
	if in.wrong {
		return errAnswer
	}
	return c
}

// fields reads an array of Redis one after the other.
type fields struct {
	of    any
	at    int
	wrong bool // something was not there
}

func next[T any](f *fields) (value T) {
	all, _ := f.of.([]any)
	ok := f.at < len(all)
	if ok {
		value, ok = all[f.at].(T)
	}
	f.at++
	f.wrong = f.wrong || !ok
	return value
}

func (f *fields) int() int64        { return next[int64](f) }
func (f *fields) time() limits.Time { return limits.Time(f.int()) }
func (f *fields) string() string    { return next[string](f) }

func (f *fields) limit() limits.Limit { return limit{f.int(), f.int(), f.int(), f.int()}.limit() }

func (f *fields) key() limits.Key {
	key, err := limits.ParseKey(f.string())
	f.wrong = f.wrong || err != nil
	return key
}

// verdict reads what is said of one claim: see decide in step.lua.
func (f *fields) verdict(c *limits.Claim, reply *limits.Reply) limits.Verdict {
	if c.Behind > 0 && reply.Verdicts[c.Behind-1].Cause != limits.Granted {
		return reply.Verdicts[c.Behind-1]
	}
	v := limits.Verdict{Cause: limits.Cause(f.int()), Earliest: reply.Now}
	if v.Cause == limits.Granted {
		return v
	}
	if place := f.int(); place > 0 && place <= int64(len(c.Needs)) {
		v.Key = c.Needs[place-1].Key
	} else if place < 0 {
		v.Key = c.Pair
	}
	v.At, v.Earliest = f.time(), f.time()
	return v
}
