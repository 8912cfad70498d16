package jobspec

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"agentlimit/limits"
)

// Options says what to load.
type Options struct {
	// Files are the job files as the user named them; "-" is Stdin. Their order
	// is the order of their jobs.
	Files []string
	// Format is "yaml", "json" or "jsonl", for standard input and files whose
	// name does not end in .yaml, .yml, .json, .jsonl or .ndjson. If it is empty
	// they are JSON Lines if their first line is a whole JSON object with http or
	// exec, else YAML.
	Format string
	// Vars win over the vars of the files.
	Vars  map[string]string
	Stdin io.Reader // nil: empty
	// Env looks up environment variables, each once; nil: [os.LookupEnv].
	Env func(string) (string, bool)
	// Written keeps what a [Rewrite] needs: about as much memory as a job's text.
	Written bool
}

// Spec is what the files of one run say, checked.
type Spec struct {
	Limits      limits.Table
	Global      int    // cap on everything this process has under way; 0: not said
	Coordinator string // as written; empty: not said
	PublicEnv   []string
	// Source hands out the jobs. Files on disk were checked whole, and are
	// closed behind their last job.
	Source Source
	// Jobs is how many jobs Source has; -1 if a pipe is among the files.
	Jobs int64
	// Warnings are what works, but may not do what is meant.
	Warnings Errors

	heading []byte // of a Rewrite
}

// Load reads the files and checks everything but the lines of a pipe. The error
// is [Errors] if the files were read but are wrong.
func Load(o Options) (*Spec, error) {
	if len(o.Files) == 0 {
		return nil, errors.New("read job files: none is named")
	}
	if !slices.Contains([]string{"", "yaml", "json", "jsonl"}, o.Format) {
		return nil, fmt.Errorf("read job files: the format %q: want yaml, json or jsonl", o.Format)
	}
	s := newSource(o)
	spec := &Spec{Source: s}
	err := s.readFiles(o)
	if err == nil {
		fields(&s.d, spec, s.d.root, documentFields)
		spec.Limits, spec.heading = s.d.table, s.d.heading()
		err = s.check(spec)
	}
	if err == nil && o.Written {
		s.d.retyped = make(map[*node]string)
		if s.d.folder, err = os.Getwd(); err != nil {
			err = fmt.Errorf("find the working folder: %w", err)
		}
	}
	if err != nil {
		for _, p := range s.parts {
			p.close()
		}
		return nil, err
	}
	return spec, nil
}

// readFiles opens all files and joins the documents among them.
func (s *source) readFiles(o Options) error {
	var broken Errors
	for _, name := range o.Files {
		p, err := open(name, o.Stdin)
		s.parts = append(s.parts, p)
		var root *node
		if err == nil {
			root, err = p.load(o.Format)
		}
		if err = broken.take(err); err != nil {
			return fmt.Errorf("read job file: %w", err)
		}
		if root != nil {
			s.d.document(p, root)
		}
	}
	if len(broken) > 0 {
		return broken
	}
	return nil
}

// document joins a document to those before it, but for its jobs. Keys that
// begin with x- are free, so that anchors have a place.
func (d *decoder) document(p *part, root *node) {
	before := d.root
	d.root = root
	if root.kind != mapping {
		d.wrong(root, "want a mapping of "+strings.Join(keys(documentFields), ", "))
		root = &node{kind: mapping}
	}
	if jobs := root.get("jobs"); jobs != nil {
		p.jobs = d.items(jobs)
	}
	root.kids = slices.DeleteFunc(root.kids, func(kid *node) bool {
		return kid.key == "jobs" || strings.HasPrefix(kid.key, "x-")
	})
	d.root = d.agree(before, root)
}

// agree returns what two files say together. Both may have a mapping, and name
// variables; any other value must be the same, but vars of flags win.
func (d *decoder) agree(before, n *node) *node {
	switch {
	case before.kind == mapping && n.kind == mapping:
		return join(before, n, d.agree)
	case n.key == "public_env":
		both := *before
		both.kids = slices.Concat(before.kids, n.kids)
		return &both
	case (before.file != flagFile || n.kind >= list) && !same(before, n):
		d.fail(n, "differs from %s", before.pos())
	}
	return before
}

// The keys of a document. The jobs are read by themselves.
var documentFields = []field[Spec]{
	{"version", func(d *decoder, _ *Spec, n *node) {
		if n.kind != plain || n.text != "1" {
			d.wrong(n, "want 1")
		}
	}},
	{"limits", func(d *decoder, s *Spec, n *node) { fields(d, s, n, limitsFields) }},
	{"vars", (*decoder).readVars},
	{"public_env", func(d *decoder, s *Spec, n *node) {
		for _, item := range d.items(n) {
			d.public[d.str(item)] = true
		}
		s.PublicEnv = slices.Sorted(maps.Keys(d.public))
	}},
	{"defaults", (*decoder).checkDefaults},
	{"jobs", nil},
}

// flagFile stands for the command line.
var flagFile = &file{name: "--var"}

// flagVars returns the vars of the command line as a document.
func flagVars(vars map[string]string) *node {
	n := &node{kind: mapping, key: "vars", file: flagFile}
	for name, value := range vars {
		n.kids = append(n.kids, &node{kind: quoted, key: name, text: value, file: flagFile})
	}
	root := &node{kind: mapping}
	if len(vars) > 0 {
		root.kids = []*node{n}
	}
	return root
}

// check sends all jobs that can be read twice through the source, and makes it
// ready for the run.
func (s *source) check(spec *Spec) error {
	all, errs := s.parts, s.d.errs
	piped := func(p *part) bool { return p.piped }
	err := s.begin(slices.DeleteFunc(slices.Clone(all), piped))
	for err == nil && len(errs) < maxErrors {
		if _, err = s.Next(); err != nil {
			if _, bad := errors.AsType[*Invalid](err); bad {
				err = nil
			}
			errs.add(s.d.errs...)
		}
	}
	if spec.Jobs = s.seq; slices.ContainsFunc(all, piped) {
		spec.Jobs = -1
	}
	s.parts = all
	switch {
	case err != nil && err != io.EOF:
		return err
	case len(errs) > 0:
		return errs
	}
	spec.Warnings = s.d.warnings
	s.closes = true
	return s.begin(all)
}
