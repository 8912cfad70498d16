// Package curl makes a job file of curl command lines. What of a line has a place in a
// job is carried over, all else is named; nothing is dropped in silence. Commands are
// only read: nothing is run, expanded or asked of a server. The files that curl would
// send are read where a job cannot name them.
//
// Secrets do not get into the file: what identifies the caller becomes ${env:NAME},
// and so does a variable of the shell.
package curl

import (
	"slices"
	"strings"
	"unicode"
)

// File is what was made of some command lines.
type File struct {
	Text    string // of the job file, in YAML
	Jobs    int
	Left    []Note   // what was not carried over, in the order of the lines
	Secrets []Secret // which the file refers to, in the order in which they were met
}

// Note is something about a line, from 1.
type Note struct {
	Line int
	Text string
}

// Secret is a variable that is to be set before the jobs can run.
type Secret struct {
	Name string
	What string // where its value is on the command line

	value string
}

// Convert reads command lines as a shell has them: with quotes, comments and lines that
// go on behind a backslash. Its error is that of a text that no shell would read. Paths
// are relative to the working folder; path returns how the job file names one.
func Convert(lines string, path func(string) string) (*File, error) {
	commands, left, err := parse(lines)
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, File: File{Left: left}}
	for _, c := range commands {
		w.command(c)
	}
	return w.finish(), nil
}

// writer makes jobs of requests.
type writer struct {
	File
	path   func(string) string
	jobs   string
	saved  []string // files that jobs save into
	public []string // variables that are no secrets, since a host is in them
}

// command adds the jobs of a command: one for each URL of each part between --next.
func (w *writer) command(c command) {
	for _, r := range read(c, w.pathOf) {
		for i := range r.urls {
			with := *w
			err := with.add(r, i)
			if err == nil {
				*w = with
				continue
			} // else nothing refers to what it has added
			if r.leave("%v: no job is made of this call of curl", err); r.broken != nil {
				break // which URLs it has may be unknown
			}
		}
		if len(r.urls) == 0 {
			r.leave("curl without a URL")
		}
		w.Left = append(w.Left, r.left...)
	}
}

// pathOf is path for what may begin with a variable, of which nobody knows more.
func (w *writer) pathOf(name string) string {
	if strings.HasPrefix(name, mark) {
		return name
	}
	return w.path(name)
}

// preamble is what a file begins with.
func (w *writer) preamble() string {
	if len(w.public) == 0 {
		return "version: 1\n"
	}
	return "version: 1\npublic_env: [" + strings.Join(w.public, ", ") + "]\n"
}

// finish puts in front of the jobs what they share.
func (w *writer) finish() *File {
	var head strings.Builder
	head.WriteString(w.preamble())
	head.WriteString("limits: {hosts: {\"*\": {concurrency: 4}}}  # of each host; rate: 10/s would be another\n")
	for i, s := range w.Secrets {
		if i == 0 {
			head.WriteString("\n# Variables to set; put no values into this file:\n")
		}
		head.WriteString("#   " + oneLine(s.Name+": "+s.What) + "\n")
	}
	w.Text = head.String() + "\njobs:\n" + strings.TrimPrefix(w.jobs, "\n")
	if w.Jobs == 0 {
		w.Text = head.String() + "\njobs: []\n"
	}
	slices.SortStableFunc(w.Left, func(a, b Note) int { return a.Line - b.Line })
	return &w.File
}

// oneLine returns text for a comment, which nothing in it may end: YAML knows more line
// breaks than one.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
