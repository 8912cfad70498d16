package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// TestUnansweredTookNothing has nobody answer a batch that was to empty a bucket: jobs
// that the bucket can serve in time are not given up, and ask again at once.
func TestUnansweredTookNothing(t *testing.T) {
	s := schedule.New(table(t, entry{kind: limits.Host, pattern: "h", rate: "1/10s", burst: 3}).For)
	add := func(seq int64, deadline limits.Time) {
		s.Add(&schedule.Job{Seq: seq, Host: "h", Account: string(rune('a' + seq)), Costs: []int64{seq, 1}, Deadline: deadline}, 0, 0, schedule.NotBefore)
	}
	add(1, limits.Never)
	add(2, limits.Never)
	if batch := s.Ask(0, 10); len(batch.Claims) != 2 {
		t.Fatalf("claims %+v, want both", batch.Claims)
	}
	s.Unanswered()
	add(3, 1)
	if d := s.Deferred(); len(d) > 0 {
		t.Errorf("given up: %+v, want nobody: the bucket was never drawn", d)
	}
	if batch := s.Ask(0, 10); len(batch.Claims) != 1 || batch.Claims[0].Needs[0].Cost != 3 {
		t.Errorf("claims %+v, want the job with the deadline, for which the bucket is full", batch.Claims)
	}
}

// TestUnansweredIsWithdrawn has a batch decided, but its reply is lost: what it granted
// is given back whole, whatever has become of its jobs.
func TestUnansweredIsWithdrawn(t *testing.T) {
	tab := table(t, entry{kind: limits.Host, pattern: "h", concurrency: 1, rate: "1/10s", burst: 1})
	s := newSim(t, tab, 100)
	granted := &schedule.Job{Seq: 1, Host: "h", Deadline: 5}
	better := &schedule.Job{Seq: 2, Host: "h", Priority: 1, Deadline: limits.Never}
	s.schedule.Add(granted, 0, 0, schedule.NotBefore)
	s.state.Sync(0, s.schedule.Ask(0, 10), &s.reply)
	s.schedule.Unanswered()
	s.schedule.Tick(6)
	if d := s.schedule.Deferred(); len(d) != 1 || d[0].Job != granted {
		t.Errorf("given up: %+v, want the job whose deadline has passed", d)
	}
	s.schedule.Add(better, 6, 0, schedule.NotBefore)
	s.state.Sync(6, s.schedule.Ask(6, 10), &s.reply)
	s.schedule.Answer(&s.reply)
	if started := s.schedule.Started(); len(started) != 1 || started[0].Job != better {
		t.Errorf("started %+v, want the other job: its permit and its token are there", started)
	}
}

// TestDeadlineWhileAsking has a deadline pass while nobody answers: the job is given up
// then, and a grant that comes afterwards is given back whole.
func TestDeadlineWhileAsking(t *testing.T) {
	for _, row := range []struct {
		what    string
		granted bool
	}{{"a grant comes late", true}, {"a refusal comes late", false}, {"nothing comes", false}} {
		t.Run(row.what, func(t *testing.T) {
			s := newSim(t, table(t, entry{kind: limits.Host, pattern: "h", concurrency: 1, rate: "1/10s", burst: 1}), 100)
			j := &schedule.Job{Seq: 1, Host: "h", Deadline: 5}
			other := &schedule.Job{Seq: 2, Host: "h", Deadline: limits.Never}
			s.schedule.Add(j, 0, 0, schedule.NotBefore)
			batch := s.schedule.Ask(0, 10)
			s.schedule.Tick(6)
			if d := s.schedule.Deferred(); len(d) != 1 || d[0].Job != j || d[0].Why != schedule.NoAnswer || s.schedule.Waiting() > 0 {
				t.Errorf("given up: %+v with %d waiting, want the job, at its deadline", d, s.schedule.Waiting())
			}
			if batch.Max = 0; row.granted {
				batch.Max = 1
			}
			if s.state.Sync(4, batch, &s.reply); row.what == "nothing comes" {
				s.schedule.Unanswered()
			} else {
				s.schedule.Answer(&s.reply)
			}
			s.schedule.Add(other, 6, 0, schedule.NotBefore)
			s.state.Sync(6, s.schedule.Ask(6, 10), &s.reply)
			s.schedule.Answer(&s.reply)
			var started []*schedule.Job
			for _, start := range s.schedule.Started() {
				started = append(started, start.Job)
			}
			if len(started) != 1 || started[0] != other {
				t.Errorf("started %v, want the other job only", started)
			}
		})
	}
}

// TestRefundIsKnown has a start come to nothing: its token is there at once, for the
// schedule as for the coordinator.
func TestRefundIsKnown(t *testing.T) {
	s := newSim(t, table(t, entry{kind: limits.Host, pattern: "h", rate: "1/10s", burst: 1}), 100)
	ask := func(now limits.Time) (started []int64) {
		if batch := s.schedule.Ask(now, 10); batch != nil {
			s.state.Sync(now, batch, &s.reply)
			s.schedule.Answer(&s.reply)
		}
		for _, start := range s.schedule.Started() {
			started = append(started, start.Job.Seq)
		}
		return started
	}
	first := &schedule.Job{Seq: 1, Host: "h", Deadline: limits.Never}
	s.schedule.Add(first, 0, 0, schedule.NotBefore)
	ask(0)
	for _, row := range []struct {
		what  string
		while bool // another batch is under way
	}{{"between batches", false}, {"while a batch is under way", true}} {
		if row.while {
			s.schedule.Pause(limits.Key{Kind: limits.Host, Name: "other"}, second, 0)
			s.schedule.Ask(0, 10)
		}
		s.schedule.Refund(first, 0)
		if row.while {
			s.schedule.Answer(&limits.Reply{Levels: []limits.Level{{Key: limits.Key{Kind: limits.Host, Name: "h"}}}})
			ask(0)
		}
		next := &schedule.Job{Seq: first.Seq + 1, Host: "h", Deadline: 1}
		s.schedule.Add(next, 0, 0, schedule.NotBefore)
		if d := s.schedule.Deferred(); len(d) > 0 {
			t.Errorf("%s: given up: %+v, want nobody", row.what, d)
		}
		if diff := cmp.Diff([]int64{next.Seq}, ask(0)); diff != "" {
			t.Errorf("%s: started (-want +got):\n%s", row.what, diff)
		}
		first = next
	}
}
