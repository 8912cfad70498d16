package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"agentlimit/jobspec"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// each makes the calls, and prints what they write.
func (p *program) each(ctx context.Context, o *eachOptions) error {
	if o.output != stdout {
		o.printed = &printer{stdout: p.stdout, stderr: p.stderr, ordered: o.ordered, outputs: make(map[string]*outputs)}
	}
	return p.run(ctx, o.runOptions)
}

// printer prints what calls write, each as a whole once its job has ended. It
// stands around a run: it sees the jobs come in from the source, gives their
// attempts a place to write to, and prints when their records go out.
type printer struct {
	jobspec.Source
	call.Caller
	runner.Sink
	stdout, stderr io.Writer
	ordered        bool // in the order of the source

	mu      sync.Mutex          // guards what follows
	outputs map[string]*outputs // of jobs that have not ended, by id
	order   []*outputs          // that are not printed, if they are printed in order
	folder  *call.Temp          // for what is long; nil: none yet
}

// outputs is what the last attempt of a job wrote.
type outputs struct {
	stdout, stderr spool
	ended          bool // all is written
}

// around puts the printer around a run.
func (p *printer) around(cfg *runner.Config) {
	p.Source, p.Caller, p.Sink = cfg.Source, cfg.Caller, cfg.Records
	cfg.Source, cfg.Caller, cfg.Records, cfg.Left = p, p, p, p.forget
}

// Next returns the next job.
func (p *printer) Next() (*jobspec.Job, error) {
	j, err := p.Source.Next()
	if err == nil {
		out := &outputs{stdout: spool{printer: p}, stderr: spool{printer: p}}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.outputs[j.ID] = out
		if p.ordered {
			p.order = append(p.order, out)
		}
	}
	return j, err
}

// forget leaves out a job that an earlier run has done.
func (p *printer) forget(j *jobspec.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outputs[j.ID].ended = true // there is nothing to print
	delete(p.outputs, j.ID)
}

// Call makes an attempt. What one before it wrote is forgotten.
func (p *printer) Call(ctx context.Context, a call.Attempt) call.Outcome {
	p.mu.Lock()
	out := p.outputs[a.Job.ID]
	p.mu.Unlock()
	out.stdout.reset()
	out.stderr.reset()
	a.Stdout, a.Stderr = &out.stdout, &out.stderr
	return p.Caller.Call(ctx, a)
}

// Append passes records on, and prints what their jobs wrote.
func (p *printer) Append(records ...*results.Record) error {
	err := p.Sink.Append(records...)
	for _, r := range records {
		err = errors.Join(err, p.ended(r.ID))
	}
	return err
}

// ended prints what a job wrote, and what waited for it.
func (p *printer) ended(id string) error {
	p.mu.Lock()
	out := p.outputs[id]
	delete(p.outputs, id)
	p.mu.Unlock()
	switch {
	case out == nil: // a line that was no job
		return nil
	case !p.ordered:
		return p.print(out)
	}
	out.stdout.end()
	out.stderr.end()
	out.ended = true
	return p.printFirst(false)
}

// printFirst prints the outputs that are first in order, up to one that is not
// complete; with all, it leaves those out and goes on.
func (p *printer) printFirst(all bool) error {
	for {
		p.mu.Lock()
		if len(p.order) == 0 || !p.order[0].ended && !all {
			p.mu.Unlock()
			return nil
		}
		out, ended := p.order[0], p.order[0].ended
		p.order = p.order[1:]
		p.mu.Unlock()
		if ended {
			if err := p.print(out); err != nil {
				return err
			}
		}
	}
}

// print prints what one job wrote.
func (p *printer) print(out *outputs) error {
	if err := out.stderr.writeTo(p.stderr); err != nil {
		return fmt.Errorf("write to standard error: %w", pathless(err))
	}
	if err := out.stdout.writeTo(p.stdout); err != nil {
		return fmt.Errorf("write to standard output: %w", pathless(err))
	}
	return nil
}

// close removes what is left.
func (p *printer) close() {
	if p.folder != nil {
		p.folder.Remove()
	}
}

// longOutput is from how many bytes on an output is kept in a file.
const longOutput = 64 << 10

// spool keeps an output until it is printed: in memory, or in a file if it is long.
type spool struct {
	*printer
	text bytes.Buffer
	file *os.File // nil: it is short
	err  error    // the first
}

// Write keeps text.
func (s *spool) Write(text []byte) (int, error) {
	switch {
	case s.err != nil:
	case s.file == nil && s.text.Len()+len(text) <= longOutput:
		s.text.Write(text)
	default:
		if s.file == nil {
			s.file, s.err = s.create()
		}
		if s.err == nil {
			_, s.err = s.file.Write(text)
		}
	}
	return len(text), s.err
}

// create opens a file in the printer's folder.
func (p *printer) create() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.folder == nil {
		var err error
		if p.folder, err = call.NewTemp(); err != nil {
			return nil, err
		}
	}
	return os.CreateTemp(p.folder.Path, "")
}

// end says that all is written. A file is closed: many may wait to be printed.
func (s *spool) end() {
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.Close())
	}
}

// reset forgets what was written.
func (s *spool) reset() {
	s.text.Reset()
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	s.file, s.err = nil, nil
}

// writeTo writes what is kept, and forgets it.
func (s *spool) writeTo(w io.Writer) error {
	defer s.reset()
	_, err := s.text.WriteTo(w)
	if s.file == nil || s.err != nil || err != nil {
		return errors.Join(s.err, err)
	}
	long, err := os.Open(s.file.Name())
	if err != nil {
		return err
	}
	defer long.Close()
	_, err = io.Copy(w, long)
	return err
}
