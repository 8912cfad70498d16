package runner

import (
	"context"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// Config is what one run works with. All but Deadline and Paused must
// be set.
type Config struct {
	Run         string // names the run in its records
	Source      jobspec.Source
	Limits      *limits.Table
	Coordinator limits.Coordinator
	Caller      call.Caller
	Records     Sink
	Stats       *Stats
	Global      int           // attempts under way at once
	Queue       int           // jobs that wait in memory
	Grace       time.Duration // for attempts under way when the run is stopped
	Deadline    time.Duration // from the start of the run, for every job; 0: none
	// Paused is told when a key is paused, and when it is no more; nil: nobody.
	// It is called by the goroutine that runs everything, and must not wait.
	Paused func(Pause)
	// Kill, when done, ends every attempt under way at once.
	Kill context.Context
}

// Sink takes the records of a run. Only one goroutine calls it.
type Sink interface {
	// Append writes the records, all or, on error, the first of them. After an
	// error no more can be written.
	Append(...*results.Record) error
}
