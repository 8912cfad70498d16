package schedule_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// TestMissedForWhat has the deadline of jobs pass that other processes kept from
// starting, at moments at which nothing is known to: each is told of what did.
func TestMissedForWhat(t *testing.T) {
	host := limits.Key{Kind: limits.Host, Name: "h"}
	tokens := limits.Verdict{Cause: limits.Tokens, Key: host, At: 2}
	permit := limits.Verdict{Cause: limits.Permit, Key: host}
	// answer has the batch that is asked for at now be refused.
	answer := func(s *schedule.Schedule, now limits.Time, v limits.Verdict) {
		reply := limits.Reply{Now: now}
		for range s.Ask(now, 2).Claims {
			reply.Verdicts = append(reply.Verdicts, v)
		}
		s.Answer(&reply)
	}
	const (
		byRate     = "no token of host/h"
		byHost     = "no permit of host/h"
		byCap      = "no permit of global"
		unanswered = "no answer"
	)
	for _, row := range []struct {
		what string
		do   func(*schedule.Schedule)
		want []string // of two jobs of one lane and one of another
	}{
		{"nobody was asked", func(*schedule.Schedule) {}, []string{byCap, byCap, byCap}},
		{"the process was full", func(s *schedule.Schedule) { s.Ask(0, 0) }, []string{byCap, byCap, byCap}},
		{"nobody answered", func(s *schedule.Schedule) { s.Ask(0, 10) }, []string{unanswered, unanswered, unanswered}},
		{"the answer was just there", func(s *schedule.Schedule) { answer(s, 3, tokens) }, []string{byRate, byRate, byRate}},
		{"it is asked again", func(s *schedule.Schedule) {
			answer(s, 0, tokens)
			s.Tick(2)
			s.Ask(2, 2)
		}, []string{byRate, byRate, byRate}},
		{"it is asked again, as others gave permits back", func(s *schedule.Schedule) {
			answer(s, 0, permit)
			s.Changed()
			s.Ask(2, 2)
		}, []string{byHost, byHost, byHost}},
		{"the process was full since", func(s *schedule.Schedule) {
			answer(s, 0, tokens)
			s.Tick(2)
			s.Ask(2, 0)
		}, []string{byCap, byCap, byCap}},
	} {
		s := schedule.New(table(t, entry{kind: limits.Host, pattern: "h", concurrency: 9, rate: "1/s", burst: 9},
			entry{kind: limits.Account, pattern: "*", concurrency: 9}).For)
		for i, account := range []string{"a", "a", "b"} {
			s.Add(&schedule.Job{Seq: int64(i), Host: "h", Account: account, Deadline: 4}, 0, 0, schedule.NotBefore)
		}
		row.do(s)
		s.Tick(5)
		got := make([]string, 3)
		for _, d := range s.Deferred() {
			switch d.Why {
			case schedule.NoPermit:
				got[d.Job.Seq] = fmt.Sprint("no permit of ", d.Key)
			case schedule.NoTokens:
				got[d.Job.Seq] = fmt.Sprint("no token of ", d.Key)
			case schedule.NoAnswer:
				got[d.Job.Seq] = unanswered
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: given up (-want +got):\n%s", row.what, diff)
		}
	}
}
