package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentlimit/runner"
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
}

// close lets the file go. After a clean end every job has its record, so nothing
// is listed as under way any more; the records must be safe before that is said.
func (o *output) close(clean bool) error {
	if o.file == nil {
		return nil
	}
	var failed error
	if clean && o.inflight != nil {
		if failed = o.file.Sync(); failed == nil {
			failed = o.inflight.Clear()
		}
	}
	return errors.Join(failed, o.file.Close())
}

// openResults opens what the run's records go to.
func (p *program) openResults(o *runOptions) (*output, error) {
	path, err := o.results()
	if err != nil {
		return nil, err
	}
	if path == stdout {
		return &output{Sink: results.NewWriter(p.stdout)}, nil
	}
	_, err = os.Stat(path)
	there := err == nil
	f, err := results.Open(path, o.mode())
	switch {
	case errors.Is(err, results.ErrExists):
		return nil, existing(path, "it exists already")
	case errors.Is(err, results.ErrInUse):
		return nil, &hinted{err, "wait for that run to end, or name another file with -o"}
	case err != nil:
		return nil, &hinted{err, "-o names another file"}
	}
	if f.Torn > 0 {
		p.voice.note(slog.LevelWarn, fmt.Sprintf("results file %q: the last record was cut off in the middle: its %d bytes are taken away", path, f.Torn), "torn_bytes", f.Torn)
	}
	out := &output{Sink: f, file: f}
	if err := p.takeUp(out, path, o.mode(), there); err != nil {
		f.Close() // nothing was written, or the error is known
		return nil, err
	}
	return out, nil
}

// takeUp reads what earlier runs left in and beside the results file, if it was
// there, or makes sure that nothing is left.
func (p *program) takeUp(out *output, path string, mode results.Mode, there bool) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out.inflight = results.NewInflight(path)
	sent, err := out.inflight.Read()
	switch {
	case err != nil:
		return err
	case mode == results.Create && len(sent) > 0:
		return existing(path, fmt.Sprintf("an earlier run was killed while %s under way", were(len(sent))))
	case mode != results.Resume:
		return out.inflight.Clear()
	case there || len(sent) > 0:
		return p.resume(out, path, sent)
	}
	return nil
}

// existing refuses a results file that must not be started anew by chance.
func existing(path, why string) error {
	return &hinted{fmt.Errorf("results file %q: %s", path, why), "--resume goes on with it, --overwrite starts it anew, -o names another"}
}

// mode says what becomes of a results file that is there.
func (o *runOptions) mode() results.Mode {
	switch {
	case o.resume:
		return results.Resume
	case o.overwrite:
		return results.Overwrite
	}
	return results.Create
}

// results returns the path of the results file, or stdout. No job file is one.
func (o *runOptions) results() (string, error) {
	path := o.output
	switch {
	case path == stdout:
		return path, nil
	case path == "" && slices.Contains(o.files, stdin):
		return "", &hinted{errors.New("no results file is named"), "with jobs from standard input, -o FILE is needed (or -o - for standard output)"}
	case path == "":
		path = defaultResults(o.files[0])
	}
	if same := results.SameFile(path, inputs(o.files)); same != "" {
		return "", &hinted{fmt.Errorf("results file %q: it is the job file %q", path, same), "-o names another file"}
	}
	return path, nil
}

// defaultResults is the results file of a job file, in the working folder.
func defaultResults(jobFile string) string {
	base := filepath.Base(jobFile)
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".results.jsonl"
}

// inputs are the files that jobs are read from.
func inputs(files []string) []string {
	files = slices.Clone(files)
	for i, name := range files {
		if name == stdin {
			files[i] = stdinFile
		}
	}
	return files
}
