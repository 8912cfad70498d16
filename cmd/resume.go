package cmd

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// shownChanges is how many changed jobs are named.
const shownChanges = 5

// resume reads the records of earlier runs. A job that was sent and has no record,
// because its run was killed, gets one now: nobody knows what became of it.
func (p *program) resume(out *output, path string, sent []results.Sent) error {
	past, err := runner.ReadPast(out.file.Records())
	if err != nil {
		return &hinted{fmt.Errorf("results file %q: %w", path, err), "--overwrite starts it anew, -o names another"}
	}
	out.past = past
	lost := 0
	for _, s := range sent {
		if past.Ended(s) {
			continue
		}
		lost++
		r := killed(s)
		if err := out.Append(r); err != nil {
			return &broken{err}
		}
		past.Add(r)
	}
	if lost > 0 {
		p.voice.note(slog.LevelWarn, fmt.Sprintf("an earlier run was killed while %s under way: nobody knows what became of that; --retry-unknown repeats it", were(lost)), "unknown", lost)
	}
	return out.inflight.Clear()
}

// killed is the record of a job that was under way when its run was killed.
func killed(s results.Sent) *results.Record {
	return &results.Record{
		Run: s.Run, ID: s.ID, Status: results.Unknown, Kind: "http", Hash: s.Hash,
		EndedAt: results.Time{Time: time.Now()},
		Error:   &results.Error{Kind: "killed", Message: "sent, and the run ended before the answer"},
	}
}

// were says how many jobs were something.
func were(n int) string {
	if n == 1 {
		return "1 job that must not be sent twice was"
	}
	return fmt.Sprintf("%d jobs that must not be sent twice were", n)
}

// changes tells of jobs whose call is another one than that of their record. It
// is safe for use by many goroutines.
type changes struct {
	voice *voice
	jobs  atomic.Int64
}

func (c *changes) note(j *jobspec.Job) {
	if c.jobs.Add(1) <= shownChanges {
		c.voice.note(slog.LevelInfo, fmt.Sprintf("job %s: its call changed since its record; it runs again", j.ID), "id", j.ID)
	}
}

// rest tells how many more there were.
func (c *changes) rest() {
	if more := c.jobs.Load() - shownChanges; more > 0 {
		c.voice.note(slog.LevelInfo, fmt.Sprintf("%s changed and ran again", many(more, "more job")), "jobs", more)
	}
}

// holding returns the longest pause of each key, of those that are not over.
func holding(past *runner.Past, now limits.Time) (all []limits.PauseRequest) {
	longest := make(map[limits.Key]limits.Time)
	for _, p := range past.Pauses {
		longest[p.Key] = max(longest[p.Key], p.Until)
	}
	for key, until := range longest {
		if until > now {
			all = append(all, limits.PauseRequest{Key: key, Until: until})
		}
	}
	return all
}
