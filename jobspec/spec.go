package jobspec

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
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
	l := loader{options: o, spec: &Spec{}}
	err := l.load()
	if err != nil {
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
	d       decoder
}

func (l *loader) load() error {
	if len(l.options.Files) == 0 {
		return errors.New("read job files: none is named")
	}
	if f := l.options.Format; f != "" && f != "yaml" && f != "json" && f != "jsonl" {
		return fmt.Errorf("read job files: the format %q: want yaml, json or jsonl", f)
	}
	l.d.rules = &rules{root: &node{kind: mapping}, values: newValues(l.options.Env)}
	for _, name := range l.options.Files {
		p, errs, err := openPart(name, l.options)
		l.parts = append(l.parts, p)
		if err != nil {
			return fmt.Errorf("read job file: %w", err)
		}
		l.d.errs.add(errs...)
	}
	if len(l.d.errs) > 0 {
		return l.d.errs
	}
	l.shared()
	return l.jobs()
}

// shared reads everything but the jobs.
func (l *loader) shared() {
	d := &l.d
	for _, p := range l.parts {
		if p.lines == nil {
			d.document(p.root)
		}
	}
	d.begin(nil, "")
	if n := d.root.get("version"); n != nil && (n.text != "1" || n.kind != plain) {
		d.wrong(n, "want 1")
	}
	d.defaults = d.root.get("defaults")
	d.readVars(l.options.Vars)
	d.limits(d.root.get("limits"), l.spec)
	d.checkDefaults()
	l.spec.Limits = d.table
	l.spec.PublicEnv = slices.Sorted(maps.Keys(d.public))
}

var documentKeys = []string{"version", "limits", "vars", "public_env", "defaults", "jobs"}

// document joins one document to those before it.
func (d *decoder) document(root *node) {
	d.begin(root, "")
	shared := &node{kind: mapping}
	for _, kid := range root.kids {
		switch kid.key {
		case "version", "limits", "vars", "defaults":
			shared.kids = append(shared.kids, kid)
		case "public_env":
			for _, item := range d.items(kid) {
				d.public[d.str(item)] = true
			}
		case "jobs":
			d.items(kid)
		default:
			// Keys that begin with x- are free, so that anchors have a place.
			if !strings.HasPrefix(kid.key, "x-") {
				d.failAt(kid.keyPos(), kid, "unknown key%s", didYouMean(kid.key, documentKeys))
			}
		}
	}
	d.root = join(d.root, shared, func(a, b *node) { d.fail(b, "differs from %s", a.pos()) })
}

var varName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// readVars takes up the vars of the files, and those of flags, which win.
func (d *decoder) readVars(flags map[string]string) {
	typed := d.root.get("vars")
	if typed != nil && typed.kind != mapping {
		d.wrong(typed, "want a mapping from names to texts")
		return
	}
	d.pairs(typed, nil, equal, func(n *node) {
		// Values are put in once: a reference in one would stay as it is.
		if strings.Contains(n.text, "${") {
			d.fail(n, "want plain text: put references where the var is used")
		}
	})
	vars := &node{kind: mapping, key: "vars"}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		vars.kids = append(vars.kids, &node{kind: quoted, key: name, text: flags[name], file: &file{name: "--var"}})
	}
	d.root = join(&node{kind: mapping, kids: []*node{vars}}, d.root, func(_, _ *node) {})
	for _, n := range d.root.get("vars").kids {
		if !varName.MatchString(n.key) {
			d.failAt(n.keyPos(), n, "%q: want a name of letters, digits, _, . and -", n.key)
		}
		d.vars[n.key] = d.str(n)
	}
	d.values.shell = d.shellVars(d.root.get("vars"))
}

// jobs makes the source, and sends all jobs that can be read twice through it.
func (l *loader) jobs() error {
	errs := l.d.errs
	s := newSource(l.d.rules)
	piped := slices.ContainsFunc(l.parts, (*part).piped)
	if err := s.begin(slices.DeleteFunc(slices.Clone(l.parts), (*part).piped)); err != nil {
		return err
	}
	for len(errs) < maxErrors {
		_, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.As(err, new(*Invalid)) {
			return err
		}
		errs.add(s.d.errs...)
	}
	if len(errs) > 0 {
		return errs
	}
	if l.spec.Jobs = s.seq; piped {
		l.spec.Jobs = -1
	}
	l.spec.Warnings = append(l.d.warnings, s.d.warnings...)
	l.spec.Source = s
	s.closes = true
	return s.begin(l.parts)
}
