package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep lists and mappings may be nested in a file.
const maxDepth = 100

var errDeep = fmt.Sprintf("nested more than %d deep", maxDepth)

// kind says what a node is.
type kind uint8

const (
	null    kind = iota // its text is as typed: null, ~ or nothing
	plain               // an unquoted YAML scalar
	number              // a number in JSON
	boolean             // true or false in JSON
	quoted              // certainly a string
	list
	mapping
)

// node is one value of a job file. Both parsers make the same tree, so that
// everything behind them is written once. A node is not changed once it is made.
type node struct {
	kind  kind
	text  string // of a scalar, as typed
	key   string // its name in a mapping
	at    place
	keyAt place
	kids  []*node // of a list or a mapping, in the order of the file
	file  *file
}

// place is a line and a column in characters, both from 1.
type place struct{ line, column int32 }

// after returns the place behind text that starts at p.
func (p place) after(text []byte) place {
	if line := bytes.LastIndexByte(text, '\n'); line >= 0 {
		p = place{p.line + int32(bytes.Count(text, []byte("\n"))), 1}
		text = text[line+1:]
	}
	p.column += int32(utf8.RuneCount(text))
	return p
}

// file is one job file, or one that rows come from.
type file struct {
	name  string // as the user named it
	dir   string // what relative paths start from; empty: the working folder
	typed bool   // it is none: it stands for the command line
	first int32  // of a pipe: number in front of those of its lines, in ids; 0: none was read
}

// stdin is how users name standard input.
const stdin = "-"

func newFile(name string) *file {
	if name == stdin {
		return &file{name: name}
	}
	return &file{name: name, dir: filepath.Dir(name)}
}

// String names the file in messages.
func (f *file) String() string {
	if f.name == stdin {
		return "<stdin>"
	}
	return f.name
}

// ending returns what the name ends in, in lower case, behind which compressed files
// have another ending.
func (f *file) ending() string {
	name, _ := PackedName(f.name)
	return strings.ToLower(filepath.Ext(name))
}

// about names the file in an error that does not.
func (f *file) about(err error) error {
	if _, named := errors.AsType[*fs.PathError](err); named {
		return err
	}
	return fmt.Errorf("%s: %w", f, err)
}

// path returns p, which was typed in the file, as the working folder sees it.
func (f *file) path(p string) string {
	switch {
	case p == "":
		return ""
	case filepath.IsAbs(p):
		return filepath.Clean(p)
	}
	return filepath.Join(f.dir, p)
}

// folder returns what relative paths start from, as an absolute path.
func (f *file) folder(working string) string {
	if filepath.IsAbs(f.dir) {
		return f.dir
	}
	return filepath.Join(working, f.dir)
}

func (f *file) position(at place) Position {
	if f.typed {
		at = place{}
	}
	return Position{File: f.String(), Line: int(at.line), Column: int(at.column)}
}

func (n *node) pos() Position    { return n.file.position(n.at) }
func (n *node) keyPos() Position { return n.file.position(n.keyAt) }

// get returns the value under key, and nil if n is nil or has none.
func (n *node) get(key string) *node {
	if n != nil {
		for _, kid := range n.kids {
			if kid.key == key {
				return kid
			}
		}
	}
	return nil
}

// several returns what a list holds, or n itself.
func (n *node) several() []*node {
	if n.kind == list {
		return n.kids
	}
	return []*node{n}
}

// pathTo spells the way from n down to target, such as ".http.url" or "[2]".
// Only messages need it, so nodes do not know their parents.
func (n *node) pathTo(target *node) (path string, found bool) {
	if n == target {
		return "", true
	}
	for i, kid := range n.kids {
		if rest, found := kid.pathTo(target); found {
			if n.kind == list {
				return fmt.Sprintf("[%d]%s", i, rest), true
			}
			return "." + kid.key + rest, true
		}
	}
	return "", false
}

// choices are the keys of a call, and of a for_each, that stand for one another.
var choices = [][]string{
	{"body", "body_base64", "json", "form", "body_file"}, {"argv", "shell"}, {"stdin", "stdin_file"},
	{"csv", "jsonl", "lines", "values"},
}

// choice returns the choices that a key of n is one of; nil: n has none.
func (n *node) choice(key string) []string {
	if n.key != "http" && n.key != "exec" && n.key != "for_each" {
		return nil
	}
	for _, keys := range choices {
		if slices.Contains(keys, key) {
			return keys
		}
	}
	return nil
}

// rival returns the value of n that one under key would replace: that of its
// name (for headers in any case), or of another choice of a call.
func (n *node) rival(key string) *node {
	others := n.choice(key)
	for _, kid := range n.kids {
		if kid.key == key || n.key == "headers" && strings.EqualFold(kid.key, key) || slices.Contains(others, kid.key) {
			return kid
		}
	}
	return nil
}

// join lays the mapping a over the mapping b; meet says what becomes of a value
// of a that has a rival in b.
func join(a, b *node, meet func(a, b *node) *node) *node {
	both := *a
	both.kids = make([]*node, 0, len(a.kids)+len(b.kids))
	for _, kid := range b.kids {
		if a.rival(kid.key) == nil {
			both.kids = append(both.kids, kid)
		}
	}
	for _, kid := range a.kids {
		if other := b.rival(kid.key); other != nil {
			kid = meet(kid, other)
		}
		both.kids = append(both.kids, kid)
	}
	return &both
}

// same reports whether a and b were typed alike, but for quotes.
func same(a, b *node) bool {
	return a.key == b.key && a.text == b.text && (a.kind == b.kind || a.kind < list && b.kind < list) &&
		slices.EqualFunc(a.kids, b.kids, same)
}
