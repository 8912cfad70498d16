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
	"syscall"
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
	began   time.Time
	total   int64 // jobs; -1: not known
	watch   watch
	ran     bool
	end     runner.Summary
	by      func() syscall.Signal // that stopped the run, so far
	changed atomic.Int64          // jobs whose call is another one than that of their record
}

// run makes a run, and accounts for it.
func (p *program) run(ctx context.Context, o *runOptions) error {
	p.voice = newVoice(p.stderr, o.logFormat)
	p.voice.quiet = o.quiet
	s := &session{program: p, runOptions: o, began: time.Now()}
	s.Stats = runner.NewStats(func(k limits.Key) limits.Limit { return s.Limits(k) })
	ctx, kill, by, release := p.takeSignals(ctx, s.sayStopping)
	defer release()
	s.Kill, s.by = kill, by
	s.Run = s.began.UTC().Format("20060102T150405Z-") + strings.ToLower(rand.Text()[:6])
	if o.summary == "" {
		return s.run(ctx)
	}
	file, err := until(ctx, o.openSummary)
	if errors.Is(err, context.Canceled) {
		return &coded{nil, exitSignal + int(by())}
	} else if err != nil {
		return err
	}
	return s.writeSummary(file, s.run(ctx))
}

// run checks everything, then runs the jobs. A signal ends either.
func (s *session) run(ctx context.Context) error {
	err := s.checkAndRun(ctx)
	if errors.Is(err, context.Canceled) && !s.ran {
		err = &coded{nil, exitSignal + int(s.by())}
		s.saySummary(s.end, err)
	}
	return err
}

func (s *session) checkAndRun(ctx context.Context) error {
	s.Written = s.deferredOut != ""
	o := s.loadOptions // that are not ours while they are filled in
	spec, err := until(ctx, func() (*jobspec.Spec, error) { return s.load(&o) })
	if err != nil {
		return err
	}
	s.loadOptions = o
	defer spec.Close()
	if err := s.checkSummary(); err != nil { // now that all files are known
		return err
	}
	if err := s.chooseCoordinator(ctx); err != nil {
		return err
	}
	defer func() { s.Coordinator.Close() }() // whichever it is then
	out, err := until(ctx, func() (*output, error) { return s.openResults(ctx) })
	if err != nil {
		return err
	}
	s.Global = s.globalCap(s.Global, spec)
	s.Limits = spec.Limits.For
	s.watch.Sink, s.watch.byLine, s.Records = out, s.Document != nil, &s.watch
	s.watch.hide = call.HideURLs(s.hideQuery)
	if s.verbose {
		s.watch.each = s.sayRecord
	}
	client := call.New(call.Config{Concurrency: s.Global, Grace: min(killAfter, max(1, s.Grace)), HideQuery: s.hideQuery, Keep: s.ownFiles(), Coordinator: s.meeting.id(), Held: s.meeting.parentKeys()})
	defer client.Close()
	s.Caller = &firstCall{client, out}
	closeDeferred, err := s.openDeferred(spec)
	if err != nil {
		return errors.Join(err, out.close(false))
	}
	s.choose(spec, out.past)
	if s.printed != nil {
		s.printed.around(&s.Config)
		defer s.printed.close()
	}
	err = s.runJobs(ctx, out.inflight)
	if s.printed != nil {
		if failed := s.printed.printFirst(true); failed != nil { // what waited when the run was stopped
			err = broken(failed)
		}
	}
	clean := unsaid(err) == nil
	if closed := errors.Join(out.close(clean), closeDeferred()); closed != nil && clean {
		err = broken(closed)
	}
	if err != nil || !s.quiet { // when it is certain how the run ended
		s.saySummary(s.end, err)
	}
	return err
}

// until returns what open does, unless ctx is done before: files may be long, standard
// input silent, and pipes without a reader. What is left of it goes with the process.
func until[T any](ctx context.Context, open func() (T, error)) (opened T, err error) {
	done := make(chan func(), 1)
	go func() {
		o, e := open()
		done <- func() { opened, err = o, e }
	}()
	select {
	case take := <-done:
		take()
	case <-ctx.Done():
		err = ctx.Err()
	}
	return opened, err
}

// ownFiles are the files that the run reads or writes itself, which no job may
// replace.
func (s *session) ownFiles() []string {
	files := append(s.inputs(), s.summary, s.deferredOut)
	if out, err := s.results(); err == nil && out != "" {
		files = append(files, out, out+".inflight")
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" || name == stdin })
}

// chooseCoordinator opens the coordinator.
func (s *session) chooseCoordinator(ctx context.Context) (err error) {
	s.Coordinator = limits.NewLocal()
	if s.meeting != (meeting{}) {
		s.LostTold = s.sayLost
		if s.Lost == runner.LostCancel {
			s.Beat = 2 * time.Second
		}
		s.Coordinator, err = s.meet(ctx, s.runOptions)
	}
	return err
}

// choose gives the run its jobs, and what earlier runs have left.
func (s *session) choose(spec *jobspec.Spec, past *runner.Past) {
	s.Source, s.total = s.chosen(spec)
	if past == nil {
		return
	}
	if s.meeting == (meeting{}) {
		// The earlier run may have ended this moment, with its buckets just emptied.
		s.Coordinator = limits.NewLocalEmpty()
	}
	now := s.Coordinator.Now()
	s.Pauses = slices.DeleteFunc(past.Pauses, func(p limits.PauseRequest) bool { return p.Until <= now })
	slices.SortFunc(s.Pauses, func(a, b limits.PauseRequest) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(b.Until, a.Until))
	})
	// The longest of each key is left.
	s.Pauses = slices.CompactFunc(s.Pauses, func(a, b limits.PauseRequest) bool { return a.Key == b.Key })
	s.Past = past
	s.Changed = func(j *jobspec.Job) {
		if s.changed.Add(1) <= shownChanges {
			s.voice.note(slog.LevelInfo, fmt.Sprintf("job %s: its call changed since its record; it runs again", j.ID), "id", j.ID)
		}
	}
}

// runJobs runs the jobs while it shows what goes on. A run that cannot list a job as
// under way cannot go on.
func (s *session) runJobs(ctx context.Context, inflight *results.Inflight) error {
	s.ran = true
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	if inflight != nil {
		s.Sending = func(j *jobspec.Job) error {
			err := inflight.Add(&results.Record{
				Run: s.Run, ID: j.ID, Status: results.Unknown, Kind: j.Kind(), Hash: j.Hash,
				Error: &results.Error{Kind: "killed", Message: "under way when its run was killed"},
			})
			if err != nil {
				abort(broken(err))
			}
			return err
		}
	}
	tell, told := s.voice.pauses()
	s.Paused, s.began = tell, time.Now()
	hide := s.voice.progress(s.progressMode(s.runOptions), s.Stats, s.total)
	err := runner.Run(ctx, s.Config)
	hide()
	told()
	s.end = s.Stats.Summary()
	code := codeOfRun(s.end.Ended, s.by(), s.deferredExit)
	s.total = totalOf(s.end, s.total)
	aborted, isAborted := errors.AsType[*coded](context.Cause(ctx))
	switch {
	case err != nil && s.end.Attempts > 0: // whatever it is, jobs ran
		err = &coded{err, exitBroken}
	case err != nil:
		err = broken(err)
	case isAborted:
		err = aborted
	case code != 0:
		err = &coded{nil, code}
	}
	return err
}

// saySummary says how the run went.
func (s *session) saySummary(sum runner.Summary, err error) {
	if more := s.changed.Load() - shownChanges; more > 0 {
		s.voice.note(slog.LevelInfo, many(more, "more job")+" changed and ran again", "jobs", more)
	}
	if sum.TooMany {
		most := fmt.Sprint(s.MaxFailures.Count)
		if share := s.MaxFailures.Percent; share > 0 {
			most = fmt.Sprintf("%g%%", share)
		}
		s.voice.say(slog.LevelInfo, fmt.Sprintf("stopped: %s failed (--max-failures %s)", many(sum.Failures, "job"), most))
	}
	if len(s.only) > 0 && sum.AllRead && sum.Jobs == 0 {
		s.voice.say(slog.LevelWarn, "--only chooses none of the jobs")
	}
	account := s.account(sum, err)
	s.voice.tell(slog.LevelInfo, counted(sum, s.total), summarize(sum, s.total, s.watch.troubles, time.Since(s.began)), "summary", account)
	switch {
	case s.output == stdout, s.output == "" && s.Document != nil:
	case sum.Ended[results.Unknown] > 0:
		s.voice.hint("--resume --retry-unknown repeats the jobs of unknown fate")
	case unstarted(sum, s.total) > 0 || sum.Ended[results.Interrupted] > 0:
		s.voice.hint("--resume goes on with what is left")
	}
}

// sayRecord says how one job ended.
func (s *session) sayRecord(r *results.Record) {
	line := recordLine(s.watch.nameOf(r), r)
	s.voice.tell(slog.LevelInfo, line, line+"\n", "id", r.ID, "status", r.Status)
}

// sayStopping says what the first signal does.
func (s *session) sayStopping() {
	text := "stopping"
	if n := s.Stats.Summary().UnderWay; n > 0 {
		text += fmt.Sprintf(": %d under way may end within %s; again to end them at once", n, brief(s.Grace))
	}
	s.voice.say(slog.LevelInfo, text)
}

// globalCap returns how many attempts may be under way at once, of which asked (if not
// 0) are asked for: not more than this process has file handles for.
func (p *program) globalCap(asked int, spec *jobspec.Spec) int {
	asked = cmp.Or(asked, spec.Global, defaultGlobal)
	global := min(asked, call.MaxConcurrency())
	if global < asked {
		p.voice.note(slog.LevelWarn, fmt.Sprintf("only %d calls at once instead of %d: the limit of open files (ulimit -n) allows no more", global, asked))
	}
	if spec.Limits.Empty() {
		p.voice.note(slog.LevelWarn, fmt.Sprintf("no limits are set: only the global cap of %d holds", global))
	}
	return global
}
