package jobspec

import (
	"errors"
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

// requests makes jobs of what a file of another format holds. Texts of the file are
// what they are: nothing in them is a reference.
type requests struct {
	Requests
	d       *decoder
	headers []*node
}

// newRequests returns the feed of a file of that format.
func (s *source) newRequests(r *records) (feed, error) {
	q := &requests{Requests: s.Requests, d: &s.d}
	typed := &file{name: "command line", typed: true}
	for _, name := range slices.Sorted(maps.Keys(q.Headers)) {
		q.headers = append(q.headers, &node{kind: quoted, key: name, text: q.Headers[name], file: typed})
	}
	if s.Format == Vegeta {
		r.file.dir = "" // as vegeta has it
		r.form = targets
		return newLineFeed(r, q.target), nil
	}
	if q.BaseURL == "" {
		return nil, errors.New("the format openai-batch is without a base URL")
	}
	return newLineFeed(r, q.batchLine), nil
}

// request is what a job is made of: its values, those of its http, and the headers there.
type request struct{ job, http, headers []*node }

// node returns the job, whose place is that of n.
func (q *requests) node(n *node, r request) *node {
	for _, h := range q.headers {
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
