package runner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/schedule"
)

// TestUnmadeAttemptsCountForNothing has the deadline of a second attempt pass with its
// grant in hand.
func TestUnmadeAttemptsCountForNothing(t *testing.T) {
	key := limits.Key{Kind: limits.Host, Name: "h"}
	start := schedule.Start{Job: &schedule.Job{}, Admitted: 1e6, Keys: []limits.Key{key}, Waited: schedule.Waits{schedule.Rate: 5e5}}
	s := NewStats(func(limits.Key) limits.Limit { return limits.Limit{} })
	s.started(start)
	once := s.Summary()
	s.started(start)
	s.ended(start, 2e6, false)
	if diff := cmp.Diff(once, s.Summary()); diff != "" {
		t.Errorf("after a start that came to nothing (-want +got):\n%s", diff)
	}
	s.ended(start, 3e6, true)
	sum := s.Summary()
	if k := sum.Keys[0]; sum.PeakWay != 1 || k.Peak != 1 || k.Held != 2*time.Second || sum.Held != 2*time.Second || k.Waited.Rate != 500 {
		t.Errorf("at the end %+v, want a peak of one, and one attempt's times", sum)
	}
}
