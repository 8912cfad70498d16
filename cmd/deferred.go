package cmd

import (
	"fmt"
	"log/slog"
	"time"

	"agentlimit/jobspec"
)

// deferredOut is the job file of what a run deferred.
type deferredOut struct {
	*whole
	rewrite *jobspec.Rewrite
	voice   *voice
	path    string
}

// openDeferred makes ready the file for deferred jobs, before any job starts.
func (s *session) openDeferred(spec *jobspec.Spec) (*deferredOut, error) {
	refuse := func(why string) error {
		return &hinted{fmt.Errorf("--deferred-out %q: %s", s.deferredOut, why), "name a file that is nothing else, such as deferred.json"}
	}
	out, _ := s.results()
	if sameFile(s.deferredOut, append(s.inputs(), out, s.summary)...) != "" {
		return nil, refuse("it is a file that this run reads or writes already")
	}
	if isStream(s.deferredOut) {
		return nil, refuse("it is no place for a file that appears whole or not at all")
	}
	file, err := create(s.deferredOut)
	if err != nil {
		return nil, refuse(err.Error())
	}
	return &deferredOut{file, spec.NewRewrite(file), s.voice, s.deferredOut}, nil
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
	if err := d.whole.close(d.rewrite.Close()); err != nil {
		return fmt.Errorf("--deferred-out %q: %w", d.path, err)
	}
	return nil
}
