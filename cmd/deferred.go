package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"agentlimit/jobspec"
	"agentlimit/runner/results"
)

// deferredOut is the job file of what a run deferred. It appears at the end,
// whole or not at all.
type deferredOut struct {
	path, place string
	file        *os.File // hidden beside place until the end
	rewrite     *jobspec.Rewrite
	voice       *voice
}

// openDeferred makes ready the file for deferred jobs, before any job starts.
func (s *session) openDeferred(spec *jobspec.Spec) (*deferredOut, error) {
	refuse := func(why string) error {
		return &hinted{fmt.Errorf("--deferred-out %q: %s", s.deferredOut, why), "name a file that is nothing else, such as deferred.json"}
	}
	if results.SameFile(s.deferredOut, append(inputs(s.files), s.output, s.summary)) != "" {
		return nil, refuse("it is a file that this run reads or writes already")
	}
	if isStream(s.deferredOut) {
		return nil, refuse("it is no place for a file that appears whole or not at all")
	}
	f, place, err := beside(s.deferredOut)
	if err != nil {
		return nil, refuse(err.Error())
	}
	return &deferredOut{s.deferredOut, place, f, spec.NewRewrite(f), s.voice}, nil
}

// add writes a job that was deferred. Its error comes back when the file is
// closed.
func (d *deferredOut) add(j *jobspec.Job, retryAt time.Time) {
	dropped, err := d.rewrite.Add(j, retryAt)
	if err == nil && dropped != "" {
		d.voice.note(slog.LevelWarn, fmt.Sprintf("job %s: its deadline %s is left out of %s", printable(j.ID), dropped, d.path))
	}
}

// close has the file appear.
func (d *deferredOut) close() error {
	err := errors.Join(d.rewrite.Close(), d.file.Sync(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.place)
	}
	if err != nil {
		os.Remove(d.file.Name())
		return fmt.Errorf("--deferred-out %q: %w", d.path, cause(err))
	}
	return nil
}
