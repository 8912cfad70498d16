package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// away is a coordinator that cannot be reached for a time. Each try takes a second.
type away struct {
	*limits.Local
	from, until time.Time
	lease       time.Duration // from when it is away on
	err         error         // instead of being away
}

func (a *away) Sync(ctx context.Context, batch *limits.Batch, reply *limits.Reply) error {
	if now := time.Now(); !now.Before(a.from) && now.Before(a.until) {
		if a.err != nil {
			return a.err
		}
		time.Sleep(time.Second)
		return &limits.Lost{Until: limits.TimeOf(a.from.Add(a.lease)), Err: errors.New("nobody answers")}
	}
	return a.Local.Sync(ctx, batch, reply)
}

// lostWorld has two calls under way for 5 s when the coordinator goes away for a
// while, 1 s after the start, and a third that waits for a permit.
func lostWorld(t *testing.T, away *away, policy runner.LostPolicy, told *[]bool) *world {
	js := []string{"h", "h", "h"}
	w := newWorld(caps(t, 2, 2), takes(5*time.Second))
	source := jobs{}
	for i, host := range js {
		source = append(source, job(i, host, ""))
	}
	w.Source, w.Coordinator, w.Lost = &source, away, policy
	w.LostTold = func(err error) { *told = append(*told, err != nil) }
	return w
}

// TestLostCoordinator has one go away for 10 s: nothing starts meanwhile.
func TestLostCoordinator(t *testing.T) {
	for _, test := range []struct {
		what     string
		policy   runner.LostPolicy
		lease    time.Duration
		deadline time.Duration
		third    results.Status // empty: no record
		first    results.Status
		fails    bool
		took     time.Duration // at least
		within   time.Duration // of that
		told     int
	}{
		{"waiting, until it is back", runner.LostWait, time.Minute, 0, results.Succeeded, results.Succeeded, false, 16 * time.Second, 3 * time.Second, 2},
		{"waiting, with a deadline in the meantime", runner.LostWait, time.Minute, 7 * time.Second, results.Deferred, results.Succeeded, false, 7 * time.Second, 2 * time.Second, 1},
		{"stopping", runner.LostStop, time.Minute, 0, "", results.Succeeded, true, 5 * time.Second, 2 * time.Second, 0},
		{"cancelling when the lease has ended", runner.LostCancel, 2 * time.Second, 0, "", results.Interrupted, true, 3 * time.Second, 4 * time.Second, 1},
	} {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := &away{Local: limits.NewLocal(), from: began.Add(time.Second), until: began.Add(11 * time.Second), lease: test.lease}
				var told []bool
				w := lostWorld(t, a, test.policy, &told)
				w.Deadline = test.deadline
				if test.policy == runner.LostCancel {
					w.Beat = time.Second
				}
				// Something to say while it is away: a fourth job that becomes due.
				(*w.Source.(*jobs))[2].NotBefore.After, (*w.Source.(*jobs))[2].NotBefore.Set = 1500*time.Millisecond, true
				err := runner.Run(t.Context(), w.Config)
				if (err != nil) != test.fails {
					t.Errorf("Run() = %v", err)
				}
				if took := time.Since(began); took < test.took || took > test.took+test.within {
					t.Errorf("the run took %v, want %v", took, test.took)
				}
				records := w.sink.byID(t)
				if got := records[job(2, "h", "").ID]; got.Status != test.third {
					t.Errorf("the job that waited: %q, want %q", got.Status, test.third)
				}
				if got := records[job(0, "h", "").ID]; got.Status != test.first {
					t.Errorf("a job under way: %q, want %q", got.Status, test.first)
				}
				for _, r := range records {
					for _, at := range r.Attempts {
						if at.AdmittedAt.After(a.from) && at.AdmittedAt.Before(a.until) {
							t.Errorf("job %s was admitted while nobody answered", r.ID)
						}
					}
				}
				if len(told) != test.told {
					t.Errorf("told %v, want %d times", told, test.told)
				}
			})
		})
	}
}

// patient counts how often the clock is read, which each turn of the loop does, and
// ends the run when that is too often.
type patient struct {
	away
	reads atomic.Int64
	kill  context.CancelFunc
}

func (p *patient) Now() limits.Time {
	if p.reads.Add(1) > 2000 {
		p.kill()
		time.Sleep(time.Second)
	}
	return p.away.Now()
}

// TestLostWithNothingToSay has a coordinator go away while all that is left is a call
// under way: the run waits, and asks about every second whether it is back.
func TestLostWithNothingToSay(t *testing.T) {
	for what, policy := range map[string]runner.LostPolicy{"wait": runner.LostWait, "cancel": runner.LostCancel} {
		for _, beat := range []time.Duration{0, 20 * time.Second} {
			t.Run(fmt.Sprintf("%s, beat %v", what, beat), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kill, killNow := context.WithCancel(t.Context())
					defer killNow()
					now := time.Now()
					p := &patient{away: away{Local: limits.NewLocal(), from: now.Add(time.Second), until: now.Add(50 * time.Second), lease: time.Hour}, kill: killNow}
					late := job(1, "h", "")
					late.NotBefore.After, late.NotBefore.Set = 1500*time.Millisecond, true
					late.Deadline = jobspec.When{After: 2 * time.Second, Set: true}
					w := newWorld(caps(t, 2, 2), takes(time.Minute), job(0, "h", ""), late)
					var back time.Duration
					w.LostTold = func(err error) {
						if err == nil {
							back = time.Since(now)
						}
					}
					w.Coordinator, w.Lost, w.Beat, w.Kill = p, policy, beat, kill
					if err := runner.Run(t.Context(), w.Config); err != nil || kill.Err() != nil {
						t.Errorf("Run() = %v, and the clock was read %d times", err, p.reads.Load())
					}
					if back < 50*time.Second || back > 52*time.Second {
						t.Errorf("told that it is back after %v, want it after 50 to 52 s", back)
					}
					if got := w.sink.byID(t)["job-1"]; got.Status != results.Deferred || got.EndedAt.Sub(now) > 2*time.Second+time.Millisecond ||
						got.Deferred.Reason != "the coordinator did not answer before the deadline" {
						t.Errorf("the second job: %q, %+v after %v, want it deferred at its deadline", got.Status, got.Deferred, got.EndedAt.Sub(now))
					}
				})
			})
		}
	}
}

// TestConflictEndsTheRun has another process keep other numbers for a key.
func TestConflictEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		var told []bool
		w := lostWorld(t, &away{Local: limits.NewLocal(), from: now, until: now.Add(time.Hour), err: &limits.Conflict{}}, runner.LostWait, &told)
		err := runner.Run(t.Context(), w.Config)
		if !errors.As(err, new(*limits.Conflict)) || len(w.sink.records) > 0 {
			t.Errorf("Run() = %v, %d records", err, len(w.sink.records))
		}
	})
}

// stopped answers its first batch so late that what it granted may be another's by then,
// as if the process had been stopped meanwhile.
type stopped struct {
	*limits.Local
	answers int
}

func (s *stopped) Sync(ctx context.Context, batch *limits.Batch, reply *limits.Reply) error {
	err := s.Local.Sync(ctx, batch, reply)
	reply.Until = limits.TimeOf(time.Now().Add(10 * time.Second))
	if s.answers++; s.answers == 1 {
		time.Sleep(14 * time.Second)
	}
	return err
}

// TestStaleGrant gives a grant back that came after the end of its lease.
func TestStaleGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator := &stopped{Local: limits.NewLocal()}
		w := newWorld(caps(t, 1, 1), takes(time.Second), job(1, "h", ""), job(2, "h", ""))
		w.Coordinator = coordinator
		began := time.Now()
		w.run(t, t.Context())
		if took := time.Since(began); took != 16*time.Second {
			t.Errorf("the run took %v, want 14 s for the first grant, and two calls", took)
		}
		for _, r := range w.sink.byID(t) {
			if len(r.Attempts) != 1 || r.Attempts[0].AdmittedAt.Before(began.Add(14*time.Second)) {
				t.Errorf("job %s: attempts %+v, want one, by a later grant", r.ID, r.Attempts)
			}
		}
	})
}
