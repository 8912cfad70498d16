package jobspec

import (
	"maps"
	"slices"
	"strings"
)

// The formats of other programs that files of requests may have. A file with another
// ending than .yaml or .yml is of such a format if [Options].Format names it.
const (
	OpenAIBatch = "openai-batch"
	Vegeta      = "vegeta"
)

// Requests says of files of such a format what they do not.
type Requests struct {
	BaseURL string // in front of the paths of a batch
	// Headers are those of each request that names none of its own, by name. They may
	// hold references.
	Headers   map[string]string
	TokenPool string // which tokens of a batch's request are taken from; empty: none
	CostField string // that says how many; empty: they are estimated
}

// nodes returns the headers as nodes of their own file.
func (r Requests) nodes() (headers []*node) {
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		headers = append(headers, &node{kind: quoted, key: name, text: r.Headers[name], file: commandLine})
	}
	return headers
}

// request is what a job is made of, of what a file of another format holds: its values,
// those of its http, and the headers there. Texts of the file are what they are: nothing
// in them is a reference.
type request struct{ job, http, headers []*node }

// jobOf returns the job, whose place is that of n.
func (s *source) jobOf(n *node, r request) *node {
	for _, h := range s.headers {
		if !slices.ContainsFunc(r.headers, func(own *node) bool { return strings.EqualFold(own.key, h.key) }) {
			r.headers = append(r.headers, h)
		}
	}
	if len(r.headers) > 0 {
		r.http = append(r.http, mappingAt(n, "headers", r.headers...))
	}
	return mappingAt(n, "", append(r.job, mappingAt(n, "http", r.http...))...)
}

// mappingAt returns a mapping for key, at the place of n.
func mappingAt(n *node, key string, kids ...*node) *node {
	return &node{kind: mapping, key: key, file: n.file, at: n.at, kids: kids}
}

// literal returns a text for key, at the place of n, in which nothing is a reference.
func literal(n *node, key, text string) *node {
	return &node{kind: quoted, key: key, text: escape(text), file: n.file, at: n.at, keyAt: n.keyAt}
}

// wrongAt is what is wrong with a value of another format.
func wrongAt(n *node, path, text string) error {
	return &Error{Pos: n.pos(), Path: path, Text: text}
}
