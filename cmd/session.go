package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// session is one run, from its options to its exit code.
type session struct {
	*program
	*runOptions
	name  string
	began time.Time
	total int64 // jobs; -1: not known
	stats *runner.Stats
	watch watch
}

// run makes a run, and accounts for it.
func (p *program) run(ctx context.Context, o *runOptions) error {
	p.voice = newVoice(p.stderr, o.logFormat)
	p.voice.quiet = o.quiet
	if err := o.checkSummary(); err != nil {
		return err
	}
	s := &session{program: p, runOptions: o, name: newRunName(), began: time.Now(), stats: runner.NewStats(nil)}
	err := s.run(ctx)
	if o.summary != "" {
		a := accountOf(s.name, s.stats.Summary(), s.total, s.watch.troubles, s.began, err)
		if failed := a.write(o.summary); failed != nil {
			return &broken{errors.Join(worded(err), failed)}
		}
	}
	return err
}

// worded returns an error that is not yet said.
func worded(err error) error {
	if errors.As(err, new(*unfinished)) {
		return nil
	}
	return err
}

// run checks everything, then runs the jobs.
func (s *session) run(ctx context.Context) error {
	spec, err := s.load(s.stdin)
	if err != nil {
		return err
	}
	out, err := s.openResults(s.runOptions)
	if err != nil {
		return err
	}
	global := s.global(spec)
	s.warn(spec, global)
	s.stats = runner.NewStats(spec.Limits.For)
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
	s.watch.Sink = out
	var deferred *deferredOut
	if s.deferredOut != "" {
		if deferred, err = s.openDeferred(spec); err != nil {
			return errors.Join(err, out.close(true))
		}
		cfg.Deferred = deferred.add
	}
	done := s.choose(&cfg, spec, out.past)
	defer cfg.Coordinator.Close()
	err = s.runJobs(ctx, cfg, out, done)
	clean := err == nil || errors.As(err, new(*unfinished))
	closed := out.close(clean)
	if deferred != nil {
		closed = errors.Join(closed, deferred.close())
	}
	if closed != nil && clean {
		err = &broken{closed}
	}
	return err
}

// choose gives the run its jobs and its coordinator. The result is to be called
// when all jobs are read.
func (s *session) choose(cfg *runner.Config, spec *jobspec.Spec, past *runner.Past) (done func()) {
	cfg.Source, s.total = spec.Source, spec.Jobs
	if len(s.only) > 0 {
		cfg.Source, s.total = &chosen{cfg.Source, s.only}, -1
	}
	if past == nil {
		cfg.Coordinator = limits.NewLocal()
		return func() {}
	}
	// The earlier run may have ended this moment, with its buckets just emptied.
	cfg.Coordinator = limits.NewLocalEmpty()
	cfg.Pauses = holding(past, cfg.Coordinator.Now())
	c := &changes{voice: s.voice}
	cfg.Past, cfg.RetryUnknown, cfg.Changed = past, s.retryUnknown, c.note
	return c.rest
}

// runJobs runs the jobs while it shows what goes on, takes signals, and says in
// the end how it went.
func (s *session) runJobs(ctx context.Context, cfg runner.Config, out *output, done func()) error {
	if s.verbose {
		s.watch.each = s.sayRecord
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	cfg.Sending = s.listing(out.inflight, abort)
	ends, release := s.takeSignals(ctx, s.sayStopping)
	cfg.Kill = ends.kill
	told, allTold := s.voice.pauses()
	cfg.Paused = told
	s.began = time.Now()
	hide := s.voice.progress(s.progressMode(s.runOptions), s.stats, s.total)
	err := runner.Run(ends.soft, cfg)
	hide()
	allTold()
	done()
	u := &unfinished{Summary: s.stats.Summary(), signal: release(), deferred: s.deferredExit}
	s.total = totalOf(u.Summary, s.total)
	if aborted, found := errors.AsType[*broken](context.Cause(ctx)); err == nil && found {
		err = aborted
	}
	if err != nil {
		err = &broken{err}
	} else if u.code() != 0 {
		err = u
	}
	if err != nil || !s.quiet {
		s.saySummary(u.Summary, err)
	}
	return err
}

// listing returns what lists jobs as under way before they are sent, nil if there
// is no list. A run that cannot list a job cannot go on.
func (s *session) listing(list *results.Inflight, abort context.CancelCauseFunc) func(*jobspec.Job) error {
	if list == nil {
		return nil
	}
	return func(j *jobspec.Job) error {
		err := list.Add(results.Sent{Run: s.name, ID: j.ID, Hash: j.Hash})
		if err != nil {
			abort(&broken{err})
		}
		return err
	}
}

// saySummary says how the run went.
func (s *session) saySummary(sum runner.Summary, err error) {
	if sum.TooMany {
		s.voice.say(slog.LevelInfo, fmt.Sprintf("stopped: %s failed (--max-failures %s)", many(sum.Failures, "job"), spellMaxFailures(s.maxFailures)))
	}
	if len(s.only) > 0 && sum.AllRead && sum.Jobs == 0 {
		s.voice.say(slog.LevelWarn, "--only chooses none of the jobs")
	}
	a := accountOf(s.name, sum, s.total, s.watch.troubles, s.began, err)
	s.voice.tell(slog.LevelInfo, counted(sum, s.total), summarize(sum, s.total, s.watch.troubles, time.Since(s.began)), "summary", a)
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
	asked := cmp.Or(s.concurrency, spec.Global, defaultGlobal)
	most := call.MaxConcurrency()
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

// newRunName returns a name that no other run has.
func newRunName() string {
	return time.Now().UTC().Format("20060102T150405Z-") + strings.ToLower(rand.Text()[:6])
}
