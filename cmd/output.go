package cmd

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"agentlimit/runner"
	"agentlimit/runner/results"
)

// stdin is the name of standard input among job files, and stdinFile of what
// stands behind it, where there is such a name.
const (
	stdin     = "-"
	stdinFile = "/dev/stdin"
)

// output is where a run's records go.
type output interface {
	runner.Sink
	io.Closer
}

// stream is standard output as an [output]: it is not ours to close.
type stream struct{ *results.Writer }

// Close does nothing and returns nil.
func (stream) Close() error { return nil }

// openResults opens what the run's records go to.
func (p *program) openResults(o *runOptions) (output, error) {
	path := o.output
	switch {
	case path == "-":
		return stream{results.NewWriter(p.stdout)}, nil
	case path == "" && slices.Contains(o.files, stdin):
		return nil, &hinted{errors.New("no results file is named"), "with jobs from standard input, -o FILE is needed (or -o - for standard output)"}
	case path == "":
		path = defaultResults(o.files[0])
	}
	if same := results.SameFile(path, inputs(o.files)); same != "" {
		return nil, &hinted{fmt.Errorf("results file %q: it is the job file %q", path, same), "-o names another file"}
	}
	mode := results.Create
	if o.overwrite {
		mode = results.Overwrite
	}
	f, err := results.Open(path, mode)
	switch {
	case errors.Is(err, results.ErrExists):
		return nil, &hinted{fmt.Errorf("results file %q: it exists already", path), "--overwrite starts it anew, -o names another"}
	case errors.Is(err, results.ErrInUse):
		return nil, &hinted{err, "wait for that run to end, or name another file with -o"}
	case err != nil:
		return nil, &hinted{err, "-o names another file"}
	}
	return f, nil
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
