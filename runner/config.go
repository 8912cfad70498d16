package runner

import (
	"context"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// Config is what one run works with. Deadline and what follows Kill may
// be left out.
type Config struct {
	Run         string // names the run in its records
	Source      jobspec.Source
	Limits      func(limits.Key) limits.Limit // what each key allows
	Coordinator limits.Coordinator
	Caller      call.Caller
	Records     Sink
	Stats       *Stats
	Global      int           // attempts under way at once
	Queue       int           // jobs that wait in memory, but for maxHidden
	Grace       time.Duration // for attempts under way when the run is stopped
	Deadline    time.Duration // from the start of the run, for every job; 0: none
	// Lost says what to do while the coordinator cannot be reached, and LostTold is
	// told of it: that it is lost, and why, or with nil that it is back. It is called
	// by the goroutine that runs everything; nil: nobody.
	Lost     LostPolicy
	LostTold func(error)
	// Beat is how often to ask the coordinator even if there is nothing to say, so that
	// its loss is met in time; 0: never.
	Beat time.Duration
	// Kill, when done, ends every attempt under way at once.
	Kill context.Context

	// Past says what earlier runs have done, which is left out; nil: nothing.
	Past *Past
	// RetryUnknown has jobs run again that ended unknown.
	RetryUnknown bool
	// Left is told of each job that is left out for that reason; nil: nobody.
	Left func(*jobspec.Job)
	// Changed is told of a job that runs again because its call is another one
	// now; nil: nobody.
	Changed func(*jobspec.Job)
	// Pauses hold from the start.
	Pauses []limits.PauseRequest
	// Sending is called before a job is sent whose fate would be unknown if the
	// run were killed; an error ends the attempt unsent. Nil: nobody wants to know.
	Sending func(*jobspec.Job) error
	// Deferred is told of each job that was deferred, and of the earliest time worth
	// trying again (zero if unknown); nil: nobody. It is called by the goroutine
	// that runs everything.
	Deferred func(job *jobspec.Job, retryAt time.Time)
	// MaxFailures stops the run, as a signal would but with all the time that
	// attempts under way need. The zero MaxFailures never does.
	MaxFailures MaxFailures
	// Paused is told when a key is paused, and when it is no more; nil: nobody.
	// It is called by the goroutine that runs everything, and must not wait.
	Paused func(Pause)
}

// LostPolicy says what a run does while its coordinator cannot be reached. Whatever
// it is, nothing starts. The zero LostPolicy is like LostWait.
type LostPolicy string

// The policies.
const (
	LostWait   LostPolicy = "wait"   // what runs may go on; ask again until deadlines defer the rest
	LostStop   LostPolicy = "stop"   // as a signal would, with all the time that attempts need
	LostCancel LostPolicy = "cancel" // as LostWait, but when others may have its permits, end what runs and stop
)

// Sink takes the records of a run. Only one goroutine calls it.
type Sink interface {
	// Append writes the records, all or, on error, the first of them, as many as a
	// [*results.Partial] says, else none. It is not called again after an error.
	Append(...*results.Record) error
}

// MaxFailures is how many jobs of a run may fail, or end unknown or invalid,
// before it is stopped: a number, or a share of those that have ended once 20
// have. Zero fields do not limit.
type MaxFailures struct {
	Count   int64
	Percent float64
}

// fewJobs is how many jobs must have ended before a share of them says much.
const fewJobs = 20

// reached reports whether so many failures among so many ended jobs are too many.
func (m MaxFailures) reached(failures, ended int64) bool {
	return m.Count > 0 && failures >= m.Count ||
		m.Percent > 0 && ended >= fewJobs && float64(failures)*100 >= m.Percent*float64(ended)
}
