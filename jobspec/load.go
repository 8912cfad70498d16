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
	// exec, else YAML. [OpenAIBatch] and [Vegeta] are for all but .yaml and .yml.
	Format   string
	Requests Requests // for these two
	// Vars win over the vars of the files.
	Vars  map[string]string
	Stdin io.Reader // nil: empty
	NUL   bool      // for_each: {lines: -} reads lines that end in NUL
	// Document is a JSON document in front of the files: what the command line says.
	// Its relative paths start from the working folder.
	Document []byte
	// Piped has regular files of lines and rows be read as pipes are: a bad one of
	// them is an [Invalid].
	Piped bool
	// Env looks up environment variables, each once; nil: [os.LookupEnv].
	Env func(string) (string, bool)
	// Coordinator wins over the files'.
	Coordinator string
	// Shard is which part of the jobs is wanted. Unless a coordinator is shared, it
	// also has only its part of each limit.
	Shard limits.Shard
	// Written keeps what a [Rewrite] needs: about as much memory as a job's text.
	Written bool
	// InOrder has the source hand out the jobs as the files have them, for those who
	// only look at them.
	InOrder bool
}

// Spec is what the files of one run say, checked.
type Spec struct {
	Limits      limits.Table
	Global      int    // cap on everything this process has under way; 0: not said
	Coordinator string // as written; empty: not said
	PublicEnv   []string
	// Source hands out the jobs. Regular files were checked whole.
	Source Source
	// Jobs is how many jobs Source has; -1 if a pipe is among the files.
	Jobs int64
	// Warnings are what works, but may not do what is meant.
	Warnings Errors

	heading []byte // of a Rewrite
	limits  *node  // nil: none
	source  *source
}

// Load reads the files and checks everything but the lines of a pipe. The error
// is [Errors] if the files were read but are wrong.
func Load(o Options) (*Spec, error) {
	if len(o.Files) == 0 && o.Document == nil {
		return nil, errors.New("read job files: none is named")
	}
	if !slices.Contains([]string{"", "yaml", "json", "jsonl", OpenAIBatch, Vegeta}, o.Format) {
		return nil, fmt.Errorf("read job files: the format %q: want yaml, json, jsonl, openai-batch or vegeta", o.Format)
	}
	s := newSource(o)
	spec := &Spec{Source: s, source: s, Coordinator: o.Coordinator}
	err := s.readFiles()
	if err == nil {
		fields(&s.d, spec, s.d.root, documentFields)
		spec.Limits, spec.heading = s.d.table, s.d.heading()
		s.makeFeeds()
		err = s.check()
	}
	if err == nil && o.Written {
		s.d.retyped, s.d.bare = make(map[*node]string), make(map[*node]bool)
		if s.d.folder, err = os.Getwd(); err != nil {
			err = fmt.Errorf("find the working folder: %w", err)
		}
	}
	if err != nil {
		spec.Close()
		return nil, err
	}
	s.begin()
	if spec.Jobs = int64(s.index.mine); len(s.pipes) > 0 {
		spec.Jobs = -1
	}
	spec.Warnings = s.d.warnings
	return spec, nil
}

// Files returns the names of the files that are read, those of for_each too; "-" is
// standard input.
func (s *Spec) Files() (names []string) {
	for _, f := range s.source.files {
		names = append(names, f.name)
	}
	return names
}

// Close closes the files. Source must not be used any more. They were only read, so
// no error matters.
func (s *Spec) Close() {
	for _, f := range s.source.opened {
		f.Close()
	}
	for _, name := range s.source.left {
		os.Remove(name)
	}
}

// commandLine stands in place of a file.
var commandLine = &file{name: "command line", typed: true}

// readFiles opens all files and joins the documents among them.
func (s *source) readFiles() error {
	var broken Errors
	if len(s.Vars) > 0 {
		s.d.root.kids = []*node{varsNode(&file{name: "--var", typed: true}, s.Vars)}
	}
	if s.Document != nil {
		root, err := parseJSON(commandLine, s.Document)
		if err != nil {
			return err
		}
		s.feeds = append(s.feeds, newListFeed(s.d.document(root), 0))
	}
	for _, name := range s.Files {
		if err := broken.take(s.load(newFile(name))); err != nil {
			return fmt.Errorf("read job file: %w", err)
		}
	}
	if len(broken) > 0 {
		return broken
	}
	return nil
}

// makeFeeds puts the feeds of rows between the jobs of documents.
func (s *source) makeFeeds() {
	read := s.feeds
	s.feeds = nil
	for _, f := range read {
		doc, is := f.(*listFeed)
		if !is {
			s.feeds = append(s.feeds, f)
			continue
		}
		first := 0
		for i, n := range doc.nodes {
			if n.kind == mapping && n.get("for_each") != nil {
				if rows := s.forEach(n, jobPath(i)); rows != nil {
					s.feeds = append(s.feeds, newListFeed(doc.nodes[first:i], first), rows)
				}
				first = i + 1
			}
		}
		s.feeds = append(s.feeds, newListFeed(doc.nodes[first:], first))
	}
}

// document joins a document to those before it, but for its jobs, which it returns.
// Keys that begin with x- are free, so that anchors have a place.
func (d *decoder) document(root *node) (jobs []*node) {
	before := d.root
	d.root = root
	if root.kind != mapping {
		d.wrong(root, "want a mapping of "+strings.Join(keys(documentFields), ", "))
		root = &node{kind: mapping}
	}
	if n := root.get("jobs"); n != nil {
		jobs = d.items(n)
	}
	root.kids = slices.DeleteFunc(root.kids, func(kid *node) bool {
		return kid.key == "jobs" || strings.HasPrefix(kid.key, "x-")
	})
	d.root = d.agree(before, root)
	return jobs
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
	case (!before.file.typed || n.kind >= list) && !same(before, n):
		d.fail(n, "differs from %s", before.pos())
	}
	return before
}

// The keys of a document; what references may name comes first. The jobs are read
// by themselves.
var documentFields = []field[Spec]{
	{"version", func(d *decoder, _ *Spec, n *node) {
		if n.kind == quoted || n.text != "1" {
			d.wrong(n, "want 1")
		}
	}},
	{"vars", (*decoder).readVars},
	{"public_env", func(d *decoder, s *Spec, n *node) {
		for _, item := range d.items(n) {
			d.public[d.str(item)] = true
		}
		s.PublicEnv = slices.Sorted(maps.Keys(d.public))
	}},
	{"limits", (*decoder).limits},
	{"defaults", (*decoder).checkDefaults},
	{"jobs", nil},
}

// varsNode returns vars as a document has them, sorted by name. References are text.
func varsNode(f *file, vars map[string]string) *node {
	n := &node{kind: mapping, key: "vars", file: f}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		n.kids = append(n.kids, &node{kind: quoted, key: name, text: escape(vars[name]), file: f})
	}
	return n
}
