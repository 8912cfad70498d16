package jobspec

import (
	"fmt"
	"regexp"
	"time"

	"agentlimit/limits"
)

// Position is a place in a job file, for messages: "jobs.yaml:14:9".
type Position struct {
	File         string
	Line, Column int // from 1; 0 if unknown
}

// String spells the position as compilers do, leaving out what is unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Source hands out the jobs of a run, one a call: first those of files, then those
// of pipes. It is used by one goroutine at a time. Files were checked before: their
// jobs come in the order of the files, but that of two hosts or lanes goes first
// which has fewer jobs that are not [Job.Done].
type Source interface {
	// Next returns the next job, or io.EOF after the last. A job is checked and
	// its references are resolved. An [Invalid] error stands for one bad line of
	// a pipe: the next call goes on behind it. Any other error is final.
	Next() (*Job, error)
	// Hidden reports whether the next job is one whose keys no job that waits has: as
	// long as that is so, nothing in memory tells whether it could start. It may not
	// be called during Next.
	Hidden() bool
}

// Job is one tool call to make, checked, with defaults applied and references
// resolved. It is not changed once a [Source] has handed it out. Exactly one of
// HTTP and Exec is set.
type Job struct {
	Seq      int64 // place in the run, from 1: of files in their order, then of pipes
	ID       string
	Host     string   // host key; empty if the job has none
	Account  string   // empty if the job has none
	Pools    []string // sorted by name, each once
	Cost     int64    // tokens from the host's and from the account's bucket
	PoolCost []int64  // tokens from each of Pools
	Priority int64

	Deadline  When
	NotBefore When
	Timeout   time.Duration // of one attempt; 0: none
	Retry     Retry
	Expect    Expect
	Output    Output
	Labels    map[string]string

	HTTP *HTTP
	Exec *Exec

	// Hash is "sha256:" and the hex digest of the http or exec block, vars put
	// in, env and file references by name.
	Hash string
	// Secrets are the values put in by env and file references anywhere in the run (with a
	// pipe: so far), longest first: one job's answer may hold what another sent,
	// and commands inherit the environment. Not to be changed: jobs share it.
	Secrets []string
	// Written is the job as a [Rewrite] says it, without not_before and an absolute
	// deadline: one JSON object. It is empty without [Options].Written.
	Written string
	Pos     Position // of the row, if it is one of a for_each

	shelf *shelf // that the source took it from; nil: a pipe
}

// Done tells the source that the job was started or given up, and waits no more. The
// second call does nothing. It may be called beside the source's methods.
func (j *Job) Done() {
	if j.shelf != nil {
		j.shelf.done()
		j.shelf = nil
	}
}

// Kind returns "http" or "exec".
func (j *Job) Kind() string {
	if j.Exec != nil {
		return "exec"
	}
	return "http"
}

// Needs appends to dst what the job takes from each key, in admission order.
func (j *Job) Needs(dst []limits.Need, table *limits.Table) []limits.Need {
	add := func(kind limits.Kind, name string, cost int64) {
		key := limits.Key{Kind: kind, Name: name}
		dst = append(dst, limits.Need{Key: key, Limit: table.For(key), Cost: cost})
	}
	if j.Host != "" {
		add(limits.Host, j.Host, j.Cost)
	}
	if j.Account != "" {
		add(limits.Account, j.Account, j.Cost)
	}
	for i, pool := range j.Pools {
		add(limits.Pool, pool, j.PoolCost[i])
	}
	return dst
}

// When is a moment that may be relative to the start of the run. The zero When
// is none.
type When struct {
	At    time.Time     // absolute; zero if relative or none
	After time.Duration // from the start of the run
	Set   bool
}

// Moment returns the moment that w stands for in a run that started at start,
// and zero if there is none.
func (w When) Moment(start limits.Time) limits.Time {
	switch {
	case !w.Set:
		return 0
	case w.At.IsZero():
		return start.Add(w.After)
	}
	return limits.TimeOf(w.At)
}

// Retry says which attempts are repeated, and when.
type Retry struct {
	Attempts   int // in all, at least 1
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64
	OnStatus   []int
	OnExit     []int
	Idempotent *bool // nil: by method, header and kind
	MaxWait    time.Duration
}

// Expect says what counts as success.
type Expect struct {
	Status    []StatusRange  // HTTP
	ExitCodes []int          // exec
	Body      *regexp.Regexp // nil: any; searched in the body or standard output
}

// StatusRange is a range of HTTP status codes, both ends included.
type StatusRange struct{ Low, High int }

// Output says what is kept of an answer.
type Output struct {
	Inline int64  // bytes of each stream kept in the record
	Save   string // file for the whole stream; empty: none
}

// HTTP is a request to make.
type HTTP struct {
	Method          string
	URL             string // absolute, http or https
	Headers         []Header
	Body            []byte // nil: none
	BodyFile        string // path of a file to send; empty: none
	ContentType     string // implied by json or form; empty: none
	FollowRedirects int
	Proxy           string
	TLS             TLS
}

// Header is one header line, name and value as typed.
type Header struct{ Name, Value string }

// TLS holds the settings of one request's TLS connection. The zero TLS uses the
// system's certificate authorities and no client certificate.
type TLS struct {
	CAFile, CertFile, KeyFile string
	Insecure                  bool
}

// Exec is a command to run. Exactly one of Argv and Shell is set.
type Exec struct {
	Argv       []string
	Shell      string
	Dir        string // empty: the working folder
	Env        []EnvVar
	InheritEnv bool
	Stdin      []byte
	StdinFile  string
}

// EnvVar is one variable of a command's environment.
type EnvVar struct{ Name, Value string }
