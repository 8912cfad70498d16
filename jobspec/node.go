package jobspec

import (
	"bytes"
	"fmt"
	"path/filepath"
	"unicode/utf8"
)

// maxDepth bounds how deep lists and mappings may be nested in a file.
const maxDepth = 100

// kind says what a node is.
type kind uint8

const (
	null    kind = iota // its text is as typed: null, ~ or nothing
	plain               // an unquoted YAML scalar or a JSON number
	boolean             // true or false in JSON
	quoted              // certainly a string
	list
	mapping
)

// node is one value of a job file. Both parsers make the same tree, so that
// everything behind them is written once. A node is not changed once it is made;
// YAML aliases share their kids.
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

// file is one job file.
type file struct {
	name string // as the user named it; "<stdin>" for standard input
	dir  string // what relative paths start from; empty: the working folder
}

func newFile(name string) *file {
	if name == "-" {
		return &file{name: "<stdin>"}
	}
	return &file{name: name, dir: filepath.Dir(name)}
}

func (f *file) position(at place) Position {
	return Position{File: f.name, Line: int(at.line), Column: int(at.column)}
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

// items returns the kids of a list, and nil for everything else. It takes nil.
func (n *node) items() []*node {
	if n == nil || n.kind != list {
		return nil
	}
	return n.kids
}

// pathTo spells the way from n down to target, such as ".http.url" or "[2]".
// Only messages need it, so nodes do not know their parents.
func (n *node) pathTo(target *node) (path string, found bool) {
	if n == nil || n == target {
		return "", n == target
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

// join returns what a and b say together. They may share mappings; any other
// value that both have must be the same, else it is given to differ.
func join(a, b *node, differ func(a, b *node)) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.kind != mapping || b.kind != mapping:
		if !same(a, b) {
			differ(a, b)
		}
		return a
	}
	both := *a
	both.kids = nil
	for _, kid := range a.kids {
		both.kids = append(both.kids, join(kid, b.get(kid.key), differ))
	}
	for _, kid := range b.kids {
		if a.get(kid.key) == nil {
			both.kids = append(both.kids, kid)
		}
	}
	return &both
}

// same reports whether a and b were typed alike.
func same(a, b *node) bool {
	if a.text != b.text || a.key != b.key || len(a.kids) != len(b.kids) || (a.kind >= list || b.kind >= list) && a.kind != b.kind {
		return false
	}
	for i := range a.kids {
		if !same(a.kids[i], b.kids[i]) {
			return false
		}
	}
	return true
}

// byteMark is the mark that some editors put in front of UTF-8.
var byteMark = []byte("\xef\xbb\xbf")

// checkText refuses what no job file may hold: UTF-16, bytes that are not UTF-8,
// and NUL. The data begins at start.
func checkText(f *file, data []byte, start place) *Error {
	at, text := 0, ""
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		text = "UTF-16: save the file as UTF-8"
	} else if at = bytes.IndexByte(data, 0); at >= 0 {
		text = "a NUL byte: save the file as UTF-8 text"
	} else if !utf8.Valid(data) {
		text = "a byte that is not UTF-8"
		at = 0
		for rest := data; ; {
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size == 1 {
				break
			}
			rest, at = rest[size:], at+size
		}
	}
	if text == "" {
		return nil
	}
	return &Error{Pos: f.position(start.after(data[:at])), Text: text}
}

// after returns the place behind text that starts at p.
func (p place) after(text []byte) place {
	for _, b := range text {
		switch {
		case b == '\n':
			p = place{p.line + 1, 1}
		case utf8.RuneStart(b):
			p.column++
		}
	}
	return p
}
