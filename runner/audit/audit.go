// Package audit proves from the records of a run that no limit was broken, or
// names the moments at which one was. It shares no code with what decides or
// schedules, so that it can judge them: it knows records and limits only.
package audit

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// Spec is what records are held against.
type Spec struct {
	// Limits returns what a key allows; for the zero Key, how many attempts one
	// run may have under way. Pairs are not asked for, and no key before all records
	// were read.
	Limits func(limits.Key) limits.Limit

	// Jobs are the ids of all jobs that should have a record. Nil: not checked.
	Jobs iter.Seq[string]

	// Terms returns what the job files say of a job of that id and hash; nil if they
	// have none. Nil: not known of any.
	Terms func(id, hash string) *Terms

	// Bad are the places of lines that are no jobs, as file:line or
	// file:line:column: each should have a record that is invalid, under whatever
	// name of the file.
	Bad []string

	// PauseLag is how long after an answer its pause may take to reach those who
	// admit: another process may admit an attempt before it is told.
	PauseLag time.Duration

	// KeysOnly asks for the keys alone: nothing is kept of jobs, and no breach is found.
	KeysOnly bool

	// Watch, if it is not nil, is told what was under way on each key but pairs: at
	// each admission, with the tokens it spent, and at each end. All of one key
	// comes in the order of time, and the global cap's before any other. Of k, Peak
	// and Tightest are not known yet.
	Watch func(k *KeyReport, at limits.Time, underWay, spent int64)
}

// Terms are what a job file says of a job.
type Terms struct {
	Needs    []limits.Need // by Key, each once; without Limit
	Deadline bool          // it has one
}

// Report is what an audit found.
type Report struct {
	Records    int         `json:"records"`
	Attempts   int         `json:"attempts"`
	Keys       []KeyReport `json:"keys"`       // host by host, then accounts, then pools, by name
	Violations []Violation `json:"violations"` // none: everything was kept
}

// KeyReport is how close a key came to its limit.
type KeyReport struct {
	Key   limits.Key   `json:"key"` // Global with the run as its name for the cap of one run
	Run   string       `json:"run,omitempty"`
	Limit limits.Limit `json:"-"`
	results.Bounds
	Started  int64   `json:"started"`            // attempts
	Peak     int64   `json:"peak"`               // most attempts under way at once
	Tightest *Window `json:"tightest,omitempty"` // where the bucket had least left, the first such; nil without a rate
}

// Window is a stretch of time, both ends included, and the tokens spent in it.
type Window struct {
	From    results.Time `json:"from"`
	To      results.Time `json:"to"`
	Spent   int64        `json:"spent"`
	Allowed int64        `json:"allowed"` // burst and what refills within the window, in whole tokens
}

// Kind says what was broken.
type Kind string

// The kinds of violation. Of Concurrency, Rate and Paused, each key has at most
// one, for the first moment.
const (
	Concurrency Kind = "concurrency" // more attempts under way than permits
	Rate        Kind = "rate"        // more tokens spent than burst and refill allow
	Paused      Kind = "pause"       // admitted before a pause had ended
	Late        Kind = "late"        // started after the job's deadline, or without it
	Unpaid      Kind = "unpaid"      // admitted without one of the job's keys, or for less than it costs
	Lost        Kind = "lost"        // a job without a record
	Doubled     Kind = "doubled"     // recorded twice by a run, or run again after it succeeded
	Unexpected  Kind = "unexpected"  // a record of a job that nobody named
	Damaged     Kind = "damaged"     // a line that is no record, or what cannot be
)

// Violation is one breach.
type Violation struct {
	Kind    Kind         `json:"kind"`
	Key     limits.Key   `json:"key,omitzero"`  // of Concurrency, Rate, Paused and Unpaid
	Job     string       `json:"job,omitempty"` // id of the job that broke it; empty if unknown
	At      results.Time `json:"at,omitzero"`   // when it was broken; zero if at no moment
	Message string       `json:"message"`       // says all of that but the moment
}

// Check audits records, which may come from several files in any order. An
// attempt counts from its admission up to, but not including, the moment at
// which it ended; a bucket's windows are compared in whole numbers, without
// tolerance. Records that cannot be read are violations.
func Check(records iter.Seq2[results.Record, error], spec Spec) Report {
	return CheckEach(func(yield func(string, iter.Seq2[results.Record, error]) bool) { yield("", records) }, spec)
}

// CheckEach audits records of files, by name, each of which is to have all jobs, by
// runs that no other has. Limits are judged over all of them together.
func CheckEach(files iter.Seq2[string, iter.Seq2[results.Record, error]], spec Spec) Report {
	b := &book{spec: spec, seed: maphash.MakeSeed(), ledgers: make(map[limits.Key]*ledger), runs: make(map[string]int32)}
	for name, records := range files {
		b.file = file{name: name, first: len(b.endings), firstRun: int32(len(b.runs))}
		b.files = append(b.files, b.file)
		for r, err := range records {
			if err != nil {
				b.report(Damaged, limits.Key{}, "", 0, "%v", err)
				continue
			}
			b.add(&r)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(b.ledgers), limits.Key.Compare) {
		b.judge(key, b.ledgers[key])
	}
	if !spec.KeysOnly {
		b.judgeFiles()
	}
	return b.found
}

// book gathers from records what is to be judged.
type book struct {
	spec    Spec
	seed    maphash.Seed
	ledgers map[limits.Key]*ledger
	runs    map[string]int32 // their numbers
	files   []file
	file    file          // that is read, then that is judged
	endings []ending      // by record, until the keys are judged
	needs   []limits.Need // room for those of one attempt
	found   Report
}

// ledger is all that happened on one key.
type ledger struct {
	spells []spell
	pauses []pause
}

// spell is the time an attempt was under way, and what it paid. There are some of them
// for each attempt.
type spell struct {
	from, to limits.Time
	paid     int64 // tokens
	job      int32 // index of its record
}

// pause is a time in which nothing may be admitted, both ends excluded.
type pause struct {
	from, until limits.Time
	job         int32 // index of the record whose answer asked for it
}

// report adds a violation. An at of 0 is no moment.
func (b *book) report(kind Kind, key limits.Key, job string, at limits.Time, message string, args ...any) {
	if !b.spec.KeysOnly {
		b.found.Violations = append(b.found.Violations, Violation{kind, key, job, results.At(at), fmt.Sprintf(message, args...)})
	}
}

// id returns the id of the job that a spell or a pause is of.
func (b *book) id(job int32) string {
	if b.spec.KeysOnly {
		return ""
	}
	return b.endings[job].id
}

func (b *book) ledger(key limits.Key) *ledger {
	l := b.ledgers[key]
	if l == nil {
		l = new(ledger)
		b.ledgers[key] = l
	}
	return l
}
