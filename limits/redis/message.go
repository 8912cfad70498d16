package redis

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

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
	Held   []holding   `json:"held,omitempty"`

	Releases  []limits.ClaimID `json:"releases,omitempty"`
	Refunds   []limits.ClaimID `json:"refunds,omitempty"`
	Withdrawn []limits.ClaimID `json:"withdrawn,omitempty"`
	Pauses    []pause          `json:"pauses,omitempty"`
	Max       int              `json:"max"`
	Names     []string         `json:"names,omitempty"`
	Limits    []limit          `json:"limits,omitempty"`
	Lanes     []*lane          `json:"lanes,omitempty"`
	Claims    []claim          `json:"claims,omitempty"`

	nameOf map[limits.Key]int // its index
	laneOf map[string]int
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

// lane is what several claims need alike.
type lane struct {
	Keys   []string `json:"keys"`
	Costs  []int64  `json:"costs"`
	limits []limit  // of the keys
}

type claim struct {
	ID       limits.ClaimID `json:"id"`
	Lane     int            `json:"lane"` // 1 + its index
	Pair     string         `json:"pair,omitempty"`
	Priority int64          `json:"priority,omitempty"`
	Deadline limits.Time    `json:"deadline,omitempty"` // 0 for none
	Since    limits.Time    `json:"since"`
	Seq      int64          `json:"seq"`
	Behind   int            `json:"behind,omitempty"`
}

// holding is a granted claim that is told again.
type holding struct {
	ID     limits.ClaimID `json:"id"`
	Keys   []string       `json:"keys"`
	Costs  []int64        `json:"costs"`
	Limits []limit        `json:"limits"`
}

// most is the largest time that Redis is told: its numbers are doubles.
const most limits.Time = 1<<53 - 1

func newRequest(batch *limits.Batch) *request {
	q := &request{
		Releases: batch.Releases, Refunds: batch.Refunds, Withdrawn: batch.Withdrawn, Max: batch.Max,
		Claims: make([]claim, len(batch.Claims)), nameOf: make(map[limits.Key]int), laneOf: make(map[string]int),
	}
	var id []byte
	for i := range batch.Claims {
		c := &batch.Claims[i]
		id = q.laneID(id[:0], c.Needs)
		at, known := q.laneOf[string(id)]
		if !known {
			q.Lanes = append(q.Lanes, q.newLane(c.Needs))
			at = len(q.Lanes)
			q.laneOf[string(id)] = at
		}
		q.Claims[i] = newClaim(c, at)
	}
	for _, p := range batch.Pauses {
		q.Pauses = append(q.Pauses, pause{p.Key.String(), min(p.Until, most)})
	}
	return q
}

// laneID appends what tells claims with other needs apart.
func (q *request) laneID(id []byte, needs []limits.Need) []byte {
	for i := range needs {
		n := &needs[i]
		at, known := q.nameOf[n.Key]
		if !known {
			at = len(q.Names)
			q.nameOf[n.Key] = at
			q.Names, q.Limits = append(q.Names, n.Key.String()), append(q.Limits, limitOf(n.Limit))
		}
		id = binary.AppendVarint(binary.AppendVarint(id, int64(at)), n.Cost)
	}
	return id
}

func (q *request) newLane(needs []limits.Need) *lane {
	l := new(lane)
	l.Keys, l.Costs = make([]string, len(needs)), make([]int64, len(needs))
	for i, n := range needs {
		l.Keys[i], l.Costs[i] = q.Names[q.nameOf[n.Key]], n.Cost
		l.limits = append(l.limits, limitOf(n.Limit))
	}
	return l
}

func newClaim(c *limits.Claim, lane int) claim {
	out := claim{
		ID: c.ID, Lane: lane, Priority: c.Rank.Priority, Since: c.Rank.Since, Seq: c.Rank.Seq, Behind: c.Behind,
	}
	if c.Rank.Deadline < most {
		out.Deadline = max(c.Rank.Deadline, 1)
	}
	if c.Pair.Kind == limits.Pair {
		out.Pair = c.Pair.String()
	}
	return out
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
			Key: in.key(), Bucket: limits.Bucket{Level: in.int(), Last: in.time()}, Pause: in.time(), Ahead: in.int(),
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
	v := limits.Verdict{Cause: limits.Cause(f.int())}
	if v.Cause == limits.Granted {
		return v
	}
	if place := f.int(); place > 0 && place <= int64(len(c.Needs)) {
		v.Key = c.Needs[place-1].Key
	} else if place < 0 {
		v.Key = c.Pair
	}
	v.At = f.time()
	return v
}
