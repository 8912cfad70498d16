package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// stdin is the name of standard input among job files, and stdinFile of what
// stands behind it, where there is such a name; stdout is the name of standard
// output as a results file.
const (
	stdin     = "-"
	stdout    = "-"
	stdinFile = "/dev/stdin"
)

// output is where the records of a run go, and what earlier runs left there.
type output struct {
	runner.Sink
	file     *results.File     // nil: standard output
	inflight *results.Inflight // nil: it is no file that could be gone on with
	past     *runner.Past      // nil: it starts anew
	// begin takes away what an earlier run left, once, when something begins to
	// happen: a run that is refused leaves it as it was. It may be called by any
	// goroutine.
	begin func() error
}

// Append writes records.
func (o *output) Append(records ...*results.Record) error {
	if err := o.begin(); err != nil {
		return err
	}
	return o.Sink.Append(records...)
}

// Call makes a call.
func (c *firstCall) Call(ctx context.Context, a call.Attempt) call.Outcome {
	if err := c.out.begin(); err != nil {
		return call.Outcome{Kind: call.Broken, Error: &results.Error{Kind: "results", Message: err.Error()}}
	}
	return c.Caller.Call(ctx, a)
}

// firstCall begins the output before the first call.
type firstCall struct {
	call.Caller
	out *output
}

// close lets the file go. After a clean end every job has its record, so nothing
// is listed as under way any more; the records must be safe before that is said.
func (o *output) close(clean bool) error {
	if o.file == nil {
		return nil
	}
	var failed error
	if clean && o.inflight != nil {
		if failed = cmp.Or(o.begin(), o.file.Sync()); failed == nil {
			failed = o.inflight.Clear()
		}
	}
	return errors.Join(failed, o.file.Close())
}

// openResults opens what the run's records go to.
func (s *session) openResults(ctx context.Context) (*output, error) {
	path, err := s.results()
	if err != nil {
		return nil, err
	}
	switch path {
	case stdout:
		return &output{Sink: results.NewWriter(s.stdout), begin: nothing}, nil
	case "":
		return &output{Sink: sink(nowhere), begin: nothing}, nil
	}
	mode := results.Create
	switch {
	case s.resume:
		mode = results.Resume
	case s.overwrite:
		mode = results.Overwrite
	}
	_, err = os.Stat(path)
	there := err == nil
	switch packed := packedBeside(path); {
	case there || packed == "" || s.overwrite:
	case s.resume:
		return nil, &hinted{fmt.Errorf("results file %q: it is not there, but %q is: --resume would run its jobs again", path, packed), "decompress that, or name another file with -o"}
	default:
		s.voice.note(slog.LevelWarn, fmt.Sprintf("results file %q: %q is there too: its jobs run again", path, packed))
	}
	f, err := results.Open(path, mode)
	switch {
	case errors.Is(err, results.ErrExists):
		return nil, existing(path, "it exists already")
	case errors.Is(err, results.ErrInUse):
		return nil, &hinted{err, "wait for that run to end, or name another file with -o"}
	case err != nil:
		return nil, &hinted{err, "-o names another file"}
	}
	if f.Torn > 0 {
		s.voice.note(slog.LevelWarn, fmt.Sprintf("results file %q: the last record was cut off in the middle: its %d bytes are taken away", path, f.Torn), "torn_bytes", f.Torn)
	}
	out := &output{Sink: f, file: f, begin: nothing}
	if err := s.takeUp(ctx, out, path, mode, there); err != nil {
		f.Close() // nothing was written, or the error is known
		return nil, err
	}
	return out, nil
}

// packedBeside returns the compressed file that a file was made, if there is one; else "".
func packedBeside(path string) string {
	for _, packed := range []string{path + ".gz", path + ".zst"} {
		if _, err := os.Stat(packed); err == nil {
			return packed
		}
	}
	return ""
}

// takeUp reads what earlier runs left in and beside the results file, if it was
// there, or makes sure that nothing is left.
func (s *session) takeUp(ctx context.Context, out *output, path string, mode results.Mode, there bool) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out.inflight = results.NewInflight(path)
	if mode == results.Overwrite {
		out.begin = sync.OnceValue(func() error { return cmp.Or(out.inflight.Clear(), out.file.Empty()) })
		return nil
	}
	sent, err := out.inflight.Read()
	switch {
	case err != nil:
		return err
	case mode == results.Create && len(sent) > 0:
		return existing(path, fmt.Sprintf("an earlier run was killed while %s under way", were(len(sent))))
	case mode == results.Resume && (there || len(sent) > 0):
		if out.past, err = runner.ReadPast(ctx, out.file.Records()); err != nil {
			return &hinted{fmt.Errorf("results file %q: %w", path, err), "--overwrite starts it anew, -o names another"}
		}
		if err := s.settle(out, sent); err != nil {
			return broken(err)
		}
	}
	return out.inflight.Clear()
}

func nothing() error { return nil }

// settle gives a record to each job that was sent and has none, because its run
// was killed: nobody knows what became of it.
func (s *session) settle(out *output, sent []results.Record) error {
	lost := 0
	for _, r := range sent {
		if out.past.Ended(r.Run, r.ID) {
			continue
		}
		lost++
		r.EndedAt = results.Time{Time: time.Now()}
		if err := out.Append(&r); err != nil {
			return err
		}
		out.past.Add(&r)
	}
	if lost > 0 {
		s.voice.note(slog.LevelWarn, fmt.Sprintf("an earlier run was killed while %s under way: nobody knows what became of that; --retry-unknown repeats it", were(lost)), "unknown", lost)
	}
	return nil
}

// were says how many jobs were something.
func were(n int) string {
	if n == 1 {
		return "1 job that must not run twice was"
	}
	return fmt.Sprintf("%d jobs that must not run twice were", n)
}

// existing refuses a results file that must not be started anew by chance.
func existing(path, why string) error {
	return &hinted{fmt.Errorf("results file %q: %s", path, why), "--resume goes on with it, --overwrite starts it anew, -o names another"}
}

// openDeferred opens the file of --deferred-out, and has the run tell it of deferred
// jobs. The result ends the file, which appears only then.
func (s *session) openDeferred(spec *jobspec.Spec) (end func() error, err error) {
	if s.deferredOut == "" {
		return func() error { return nil }, nil
	}
	out, _ := s.results()
	file, err := (*whole)(nil), errors.New("it is no place for a file that appears whole or not at all")
	if s.deferredOut != stdout && !isStream(s.deferredOut) {
		file, err = create(s.deferredOut, append(s.inputs(), out, s.summary)...)
	}
	if err != nil {
		return nil, &hinted{fmt.Errorf("--deferred-out %q: %w", s.deferredOut, err), "name a file that is nothing else, such as deferred.json"}
	}
	rewrite := spec.NewRewrite(file)
	s.Deferred = func(j *jobspec.Job, retryAt time.Time) {
		dropped, err := rewrite.Add(j, retryAt) // the error comes again at the end
		if err == nil && dropped != "" {
			s.voice.note(slog.LevelWarn, fmt.Sprintf("job %s: its deadline %s is left out of %s", j.ID, dropped, s.deferredOut))
		}
	}
	return func() error {
		if err := file.close(rewrite.Close()); err != nil {
			return fmt.Errorf("--deferred-out %q: %w", s.deferredOut, err)
		}
		return nil
	}, nil
}

// sink is a [runner.Sink] of one function.
type sink func(...*results.Record) error

// Append calls it.
func (s sink) Append(records ...*results.Record) error { return s(records...) }

// nowhere takes the records of a run whose results nobody wants.
func nowhere(...*results.Record) error { return nil }

// results returns the path of the results file, stdout, or "" if there is to be
// none. No job file is one.
func (o *runOptions) results() (string, error) {
	path := o.output
	switch {
	case path == stdout, path == "" && o.Document != nil:
		return path, nil
	case path == "" && slices.Contains(o.Files, stdin):
		return "", &hinted{errors.New("no results file is named"), "with jobs from standard input, -o FILE is needed (or -o - for standard output)"}
	case path == "":
		base, _ := jobspec.PackedName(filepath.Base(o.Files[0]))
		path = strings.TrimSuffix(base, filepath.Ext(base)) + ".results.jsonl"
	}
	if inner, packed := jobspec.PackedName(path); packed {
		return "", &hinted{fmt.Errorf("results file %q: results are not written compressed: what a crash cuts off could not be set right", path), fmt.Sprintf("-o %s, and compress it when all is done: report and audit read it so", inner)}
	}
	if err := taken(path, o.inputs()); err != nil {
		return "", &hinted{fmt.Errorf("results file %q: %w", path, err), "-o names another file"}
	}
	return path, nil
}

// inputs are the files that jobs are read from.
func (o *loadOptions) inputs() []string {
	files := slices.Concat(o.Files, o.read)
	if slices.Contains(files, stdin) {
		files = append(files, stdinFile)
	}
	return files
}
