package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// shownChanges is how many changed jobs are named.
const shownChanges = 5

// session is one run, from its options to its exit code.
type session struct {
	*program
	*runOptions
	name    string // that no other run has
	began   time.Time
	total   int64 // jobs; -1: not known
	stats   *runner.Stats
	watch   watch
	changed atomic.Int64 // jobs whose call is another one than that of their record
}

// run makes a run, and accounts for it.
func (p *program) run(ctx context.Context, o *runOptions) error {
	p.voice = newVoice(p.stderr, o.logFormat)
	p.voice.quiet = o.quiet
	s := &session{program: p, runOptions: o, began: time.Now(), stats: runner.NewStats(nil)}
	s.name = s.began.UTC().Format("20060102T150405Z-") + strings.ToLower(rand.Text()[:6])
	if o.summary == "" {
		return s.run(ctx)
	}
	if err := o.checkSummary(); err != nil {
		return err
	}
	return s.writeSummary(s.run(ctx))
}

// run checks everything, then runs the jobs.
func (s *session) run(ctx context.Context) error {
	spec, err := s.load(s.stdin)
	if err != nil {
		return err
	}
	out, err := s.openResults()
	if err != nil {
		return err
	}
	global := s.global(spec)
	s.warn(spec, global)
	s.stats = runner.NewStats(spec.Limits.For)
	s.watch.Sink = out
	if s.verbose {
		s.watch.each = s.sayRecord
	}
	client := call.New(call.Config{Concurrency: global, Grace: min(killAfter, max(1, s.grace))})
	defer client.Close()
	cfg := runner.Config{
		Run:         s.name,
		Limits:      &spec.Limits,
		Caller:      client,
		Records:     &s.watch,
		Stats:       s.stats,
		Global:      global,
		Queue:       s.queue,
		Grace:       s.grace,
		Deadline:    s.deadline,
		MaxFailures: s.maxFailures,
	}
	s.choose(&cfg, spec, out.past)
	defer cfg.Coordinator.Close()
	err = s.runJobs(ctx, cfg, out.inflight)
	clean := unsaid(err) == nil
	if closed := out.close(clean); closed != nil && clean {
		err = &broken{closed}
	}
	return err
}

// choose gives the run its jobs and its coordinator.
func (s *session) choose(cfg *runner.Config, spec *jobspec.Spec, past *runner.Past) {
	cfg.Source, s.total = spec.Source, spec.Jobs
	if len(s.only) > 0 {
		cfg.Source, s.total = &chosen{cfg.Source, s.only}, -1
	}
	if past == nil {
		cfg.Coordinator = limits.NewLocal()
		return
	}
	// The earlier run may have ended this moment, with its buckets just emptied.
	cfg.Coordinator = limits.NewLocalEmpty()
	now := cfg.Coordinator.Now()
	cfg.Pauses = slices.DeleteFunc(past.Pauses, func(p limits.PauseRequest) bool { return p.Until <= now })
	// The longest pause of a key comes first, and the others change nothing.
	slices.SortFunc(cfg.Pauses, func(a, b limits.PauseRequest) int { return cmp.Compare(b.Until, a.Until) })
	cfg.Source = &runner.Remaining{Source: cfg.Source, Past: past, RetryUnknown: s.retryUnknown, Stats: s.stats, Changed: func(j *jobspec.Job) {
		if s.changed.Add(1) <= shownChanges {
			s.voice.note(slog.LevelInfo, fmt.Sprintf("job %s: its call changed since its record; it runs again", j.ID), "id", j.ID)
		}
	}}
}

// runJobs runs the jobs while it shows what goes on, takes signals, and says in
// the end how it went. A run that cannot list a job as under way cannot go on.
func (s *session) runJobs(ctx context.Context, cfg runner.Config, inflight *results.Inflight) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	if inflight != nil {
		cfg.Sending = func(j *jobspec.Job) error {
			err := inflight.Add(results.Sent{Run: s.name, ID: j.ID, Hash: j.Hash})
			if err != nil {
				abort(&broken{err})
			}
			return err
		}
	}
	soft, kill, release := s.takeSignals(ctx, s.sayStopping)
	cfg.Kill = kill
	told, allTold := s.voice.pauses()
	cfg.Paused = told
	s.began = time.Now()
	hide := s.voice.progress(s.progressMode(s.runOptions), s.stats, s.total)
	err := runner.Run(soft, cfg)
	hide()
	allTold()
	u := &unfinished{Summary: s.stats.Summary(), signal: release(), deferred: s.deferredExit}
	s.total = totalOf(u.Summary, s.total)
	aborted, isAborted := errors.AsType[*broken](context.Cause(ctx))
	switch {
	case err != nil:
		err = &broken{err}
	case isAborted:
		err = aborted
	case u.code() != 0:
		err = u
	}
	if err != nil || !s.quiet {
		s.saySummary(u.Summary, err)
	}
	return err
}

// saySummary says how the run went.
func (s *session) saySummary(sum runner.Summary, err error) {
	if more := s.changed.Load() - shownChanges; more > 0 {
		s.voice.note(slog.LevelInfo, many(more, "more job")+" changed and ran again", "jobs", more)
	}
	if sum.TooMany {
		most := fmt.Sprint(s.maxFailures.Count)
		if share := s.maxFailures.Percent; share > 0 {
			most = fmt.Sprintf("%g%%", share)
		}
		s.voice.say(slog.LevelInfo, fmt.Sprintf("stopped: %s failed (--max-failures %s)", many(sum.Failures, "job"), most))
	}
	if len(s.only) > 0 && sum.AllRead && sum.Jobs == 0 {
		s.voice.say(slog.LevelWarn, "--only chooses none of the jobs")
	}
	account := s.account(sum, err)
	s.voice.tell(slog.LevelInfo, counted(sum, s.total), summarize(sum, s.total, s.watch.troubles, time.Since(s.began)), "summary", account)
	if sum.Ended[results.Unknown] > 0 && s.output != stdout {
		s.voice.hint("--resume --retry-unknown repeats the jobs of unknown fate")
	}
}

// sayRecord says how one job ended.
func (s *session) sayRecord(r *results.Record) {
	line := recordLine(r)
	s.voice.tell(slog.LevelInfo, line, line+"\n", "id", r.ID, "status", r.Status)
}

// sayStopping says what the first signal does.
func (s *session) sayStopping() {
	notice := "stopping"
	if underWay := s.stats.Summary().UnderWay; underWay > 0 {
		notice = fmt.Sprintf("stopping: %d under way may end within %s; again to end them at once", underWay, brief(s.grace))
	}
	s.voice.say(slog.LevelInfo, notice)
}

// global returns how many attempts may be under way at once: not more than this
// process has file handles for.
func (s *session) global(spec *jobspec.Spec) int {
	asked, most := cmp.Or(s.concurrency, spec.Global, defaultGlobal), call.MaxConcurrency()
	if asked > most {
		s.voice.note(slog.LevelWarn, fmt.Sprintf("only %d calls at once instead of %d: the limit of open files (ulimit -n) allows no more", most, asked))
	}
	return min(asked, most)
}

// warn says what works, but may not do what is meant.
func (s *session) warn(spec *jobspec.Spec, global int) {
	for _, w := range spec.Warnings {
		s.voice.note(slog.LevelWarn, fmt.Sprint(w))
	}
	if spec.Limits.Empty() {
		s.voice.note(slog.LevelWarn, fmt.Sprintf("no limits are set: only the global cap of %d holds", global))
	}
}
