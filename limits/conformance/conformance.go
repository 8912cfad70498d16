// Package conformance tests what every coordinator must do, whatever it keeps its
// state in. A coordinator's own tests call [Alone], and [Together] if several
// processes can share it. Nothing here knows how time is kept: a test asks again
// when the refusal says so, and waits for milliseconds only.
package conformance

import (
	"context"
	"testing"
	"time"

	"agentlimit/limits"
)

// Open returns so many members of one new coordinator that nobody has used yet,
// each with a State, or a connection, of its own. It has t close them: a second
// Close must do no harm.
type Open func(t *testing.T, members int) []limits.Coordinator

// Alone tests what holds for a process that is the only one.
func Alone(t *testing.T, open Open) {
	run(t, open, 1, []test{
		{"AllOrNothing", allOrNothing},
		{"ReleaseAndRefund", releaseAndRefund},
		{"AskAgainWhenTold", askAgainWhenTold},
		{"SavesForTheDear", savesForTheDear},
		{"HostPause", hostPause},
		{"PairPause", pairPause},
		{"MaxAndBehind", maxAndBehind},
		{"TooLate", tooLate},
		{"SaidTwice", saidTwice},
		{"Levels", levels},
	})
}

// Together tests what holds between the processes that share a coordinator.
func Together(t *testing.T, open Open) {
	run(t, open, 2, []test{
		{"OwnIDs", ownIDs},
		{"ReleaseWakes", releaseWakes},
		{"NobodyTakesBack", nobodyTakesBack},
		{"DearIsNotStarved", dearIsNotStarved},
		{"PauseStopsAll", pauseStopsAll},
		{"OtherNumbers", otherNumbers},
		{"Cancelled", cancelled},
	})
	run(t, open, 8, []test{
		{"CapIsShared", capIsShared},
		{"BucketIsShared", bucketIsShared},
		{"LeavingGivesBack", leavingGivesBack},
		{"Crowd", crowd},
	})
}

type test struct {
	name string
	run  func(t *testing.T, m []*member)
}

func run(t *testing.T, open Open, members int, tests []test) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all []*member
			for _, c := range open(t, members) {
				all = append(all, &member{Coordinator: c, t: t})
			}
			tt.run(t, all)
		})
	}
}

// patience is how long anything may take that should take milliseconds, and pause is
// what a service asks for: time enough to hear of it on a busy machine.
const (
	patience = 20 * time.Second
	pause    = 200 * time.Millisecond
)

// member is one process, as a test sees it.
type member struct {
	limits.Coordinator
	t     *testing.T
	reply limits.Reply
}

// say carries one batch, which must not fail; without a Max it has many slots
// free. The verdicts are valid until the next call.
func (m *member) say(batch limits.Batch) []limits.Verdict {
	m.t.Helper()
	if batch.Max == 0 {
		batch.Max = 100
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Sync(ctx, &batch, &m.reply); err != nil {
		m.t.Fatalf("Sync(%+v) = %v", batch, err)
	}
	return m.reply.Verdicts
}

// ask asks for claims alone, and returns the causes of the verdicts.
func (m *member) ask(claims ...limits.Claim) []limits.Cause {
	m.t.Helper()
	return causes(m.say(limits.Batch{Claims: claims}))
}

func (m *member) release(ids ...limits.ClaimID) {
	m.t.Helper()
	m.say(limits.Batch{Releases: ids})
}

// wait waits until the coordinator's clock has reached the time.
func (m *member) wait(until limits.Time) {
	for now := m.Now(); now < until; now = m.Now() {
		<-time.After(until.Sub(now))
	}
}

// changed waits until the member is told that asking again may help.
func (m *member) changed() {
	m.t.Helper()
	select {
	case <-m.Changed():
	case <-time.After(patience):
		m.t.Fatal("a member was not woken")
	}
}

// granted asks for the claim, and again whenever that may help, until it is
// granted.
func (m *member) granted(claim limits.Claim) {
	m.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		v := m.say(limits.Batch{Claims: []limits.Claim{claim}})[0]
		switch {
		case v.Cause == limits.Granted:
			return
		case v.At > 0:
			m.wait(v.At)
		default:
			m.changed()
		}
	}
	m.t.Fatalf("claim %+v is not granted", claim)
}

func causes(verdicts []limits.Verdict) []limits.Cause {
	all := []limits.Cause{}
	for _, v := range verdicts {
		all = append(all, v.Cause)
	}
	return all
}

// claim builds a claim without a deadline, of the rank of its number: one token,
// if there are any, of each key.
func claim(id int, limit limits.Limit, keys ...limits.Key) limits.Claim {
	c := limits.Claim{ID: limits.ClaimID(id), Rank: limits.Rank{Deadline: limits.Never, Seq: int64(id)}}
	for _, k := range keys {
		c.Needs = append(c.Needs, limits.Need{Key: k, Limit: limit, Cost: min(1, limit.Burst)})
	}
	return c
}

// dear is a claim whose first need costs so many tokens.
func dear(c limits.Claim, cost int64) limits.Claim {
	c.Needs[0].Cost = cost
	return c
}

// since is a claim whose lane waits since then.
func since(c limits.Claim, at limits.Time) limits.Claim {
	c.Rank.Since = at
	return c
}

var (
	host    = limits.Key{Kind: limits.Host, Name: "api.example.com"}
	other   = limits.Key{Kind: limits.Host, Name: "other.example.com:8443"}
	account = limits.Key{Kind: limits.Account, Name: `team "ä"/1`}
	poolP   = limits.Key{Kind: limits.Pool, Name: "p"}
	poolQ   = limits.Key{Kind: limits.Pool, Name: "q"}
)

// slots is a limit of so many permits, perMinute one of a bucket that hardly
// refills during a test, and perMS one that refills at once.
func slots(n int64) limits.Limit { return limits.Limit{Concurrency: n} }

func perMinute(burst int64) limits.Limit {
	return limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 60e6}, Burst: burst}
}

func perMS(burst int64) limits.Limit {
	return limits.Limit{Rate: limits.Rate{Tokens: 1, Per: 1000}, Burst: burst}
}
