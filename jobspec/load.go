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
	Jobs     int64
	Warnings []Warning
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
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	l := loader{options: o, spec: &Spec{}, source: &source{ids: newIDs()}}
	l.source.d.values = values{vars: make(map[string]string), public: make(map[string]bool), lookup: o.Env, env: make(map[string]string)}
	if err := l.load(); err != nil {
		for _, p := range l.parts {
			p.close()
		}
		return nil, err
	}
	return l.spec, nil
}

type loader struct {
	options Options
	spec    *Spec
	parts   []*part
	source  *source
	shared  shared
}

// shared is what the documents say for all jobs, joined.
type shared struct {
	limits, vars, defaults *node
	jobs                   []*node // of the document at hand
}

func (l *loader) load() error {
	d := &l.source.d
	var broken Errors
	for _, name := range l.options.Files {
		p, err := open(name, l.options.Stdin)
		l.parts = append(l.parts, p)
		var root *node
		var errs Errors
		if err == nil {
			root, errs, err = p.load(l.options.Format)
		}
		if err != nil {
			return fmt.Errorf("read job file: %w", err)
		}
		if broken.add(errs...); root != nil && len(errs) == 0 {
			d.document(p, root, &l.shared)
		}
	}
	if len(broken) > 0 {
		return broken
	}
	l.read(d)
	return l.jobs()
}

var documentFields = []field[shared]{
	{"version", func(d *decoder, _ *shared, n *node) {
		if n.kind != plain || n.text != "1" {
			d.wrong(n, "want 1")
		}
	}},
	{"limits", func(d *decoder, s *shared, n *node) { s.limits = d.joinFiles(s.limits, n) }},
	{"vars", func(d *decoder, s *shared, n *node) { s.vars = d.joinFiles(s.vars, n) }},
	{"public_env", func(d *decoder, _ *shared, n *node) {
		for _, item := range d.items(n) {
			d.public[d.str(item)] = true
		}
	}},
	{"defaults", func(d *decoder, s *shared, n *node) { s.defaults = d.joinFiles(s.defaults, n) }},
	{"jobs", func(d *decoder, s *shared, n *node) { s.jobs = d.items(n) }},
}

// document joins a document to those before it. Keys that begin with x- are
// free, so that anchors have a place.
func (d *decoder) document(p *part, root *node, s *shared) {
	root.kids = slices.DeleteFunc(root.kids, func(kid *node) bool { return strings.HasPrefix(kid.key, "x-") })
	d.begin(root, "")
	s.jobs = nil
	fields(d, s, root, documentFields)
	p.jobs = s.jobs
}

// joinFiles joins what two files say. What both say must be the same, but for
// mappings, which they may share.
func (d *decoder) joinFiles(before, n *node) *node {
	if before == nil {
		return n
	}
	if before.kind == mapping && n.kind == mapping {
		return join(before, n, d.joinFiles)
	}
	if !same(before, n) {
		d.fail(n, "differs from %s", before.pos())
	}
	return before
}

// read reads what the documents share.
func (l *loader) read(d *decoder) {
	d.readVars(l.shared.vars, l.options.Vars)
	if n := l.shared.limits; n != nil {
		d.begin(n, "limits")
		fields(d, l.spec, n, limitsFields)
	}
	if n := l.shared.defaults; n != nil {
		d.checkDefaults(n)
	}
	l.spec.Limits = d.table
	l.spec.PublicEnv = slices.Sorted(maps.Keys(d.public))
}

// readVars takes up the vars of the files, and those of flags, which win.
func (d *decoder) readVars(typed *node, flags map[string]string) {
	vars := &node{kind: mapping, file: &file{name: "--var"}}
	for name, value := range flags {
		vars.kids = append(vars.kids, &node{kind: quoted, key: name, text: value, file: vars.file})
	}
	if typed != nil {
		d.begin(typed, "vars")
		d.pairs(typed, func(n *node) {
			// Values are put in once: a reference in one would stay as it is.
			if strings.Contains(n.text, "${") {
				d.fail(n, "want plain text: put references where the var is used")
			}
		})
	}
	vars = join(vars, typed, func(flag, _ *node) *node { return flag })
	d.begin(vars, "vars")
	d.setVars(vars)
}

// jobs sends all jobs that can be read twice through the source.
func (l *loader) jobs() error {
	s := l.source
	errs := s.d.errs
	piped := func(p *part) bool { return p.piped }
	if err := s.begin(slices.DeleteFunc(slices.Clone(l.parts), piped)); err != nil {
		return err
	}
	for len(errs) < maxErrors {
		_, err := s.Next()
		if err == io.EOF {
			break
		}
		if _, bad := errors.AsType[*Invalid](err); err != nil && !bad {
			return err
		}
		errs.add(s.d.errs...)
	}
	if len(errs) > 0 {
		return errs
	}
	if l.spec.Jobs = s.seq; slices.ContainsFunc(l.parts, piped) {
		l.spec.Jobs = -1
	}
	l.spec.Warnings, l.spec.Source = s.d.warnings, s
	s.closes = true
	return s.begin(l.parts)
}
