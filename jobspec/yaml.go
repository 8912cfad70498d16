package jobspec

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the one document in data. What the parser itself lets pass
// (doubled keys, unknown tags, a second document, aliases that refer to
// themselves or blow up, deep nesting) is refused here.
func parseYAML(f *file, data []byte) (*node, error) {
	if err := cmp.Or(checkText(f, data, 1), checkTabs(f, data)); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		return nil, &Error{Pos: f.position(place{}), Text: "an empty file: want jobs (a stream that may be empty needs the format jsonl)"}
	}
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			return nil, &Error{Pos: f.position(yamlPlace(&second)), Text: "a second document: want one a file"}
		}
	}
	if err != io.EOF {
		return nil, yamlError(f, err)
	}
	c := converter{file: f, open: make(map[*yaml.Node]bool)}
	root := c.convert(doc.Content[0], 1)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return root, nil
}

// yamlError gives a syntax error the form of all others.
func yamlError(f *file, err error) *Error {
	e := &Error{Pos: f.position(place{}), Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	if rest, found := strings.CutPrefix(e.Text, "line "); found {
		line, text, _ := strings.Cut(rest, ": ")
		e.Pos.Line, _ = strconv.Atoi(line)
		e.Text = text
	}
	if strings.HasPrefix(e.Text, "exceeded max depth") {
		e.Text = errDeep
	}
	return e
}

func yamlPlace(y *yaml.Node) place { return place{int32(y.Line), int32(y.Column)} }

// blockText matches a line that opens a block of text.
var blockText = regexp.MustCompile(`(^|[\s:-])[|>][-+0-9]*\s*(#.*)?$`)

// checkTabs refuses tabs in the indentation of a line. Within a block of text a
// tab behind the block's indentation is text.
func checkTabs(f *file, data []byte) error {
	block := -1 // indentation of the line that opened a block of text
	number := int32(0)
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		content := bytes.TrimLeft(line, " \t")
		switch {
		case len(content) == 0 || content[0] == '#' || block >= 0 && indent > block:
		case line[indent] == '\t':
			return &Error{Pos: f.position(place{number, int32(indent) + 1}), Text: "a tab in the indentation: indent with spaces"}
		case bytes.ContainsAny(line, "|>") && blockText.Match(line):
			block = indent
		default:
			block = -1
		}
	}
	return nil
}

// converter makes nodes of a YAML tree. An alias becomes a copy of what it
// refers to. All copies together are bounded, so that a small file cannot fill
// the memory.
type converter struct {
	file    *file
	open    map[*yaml.Node]bool // anchored values that are being made
	alias   *yaml.Node          // the outermost alias that is being followed
	written int                 // nodes in the file
	made    int                 // nodes with their copies
	errs    Errors
	stopped bool // an error makes the rest pointless
}

func (c *converter) fail(y *yaml.Node, format string, args ...any) {
	if !c.stopped {
		c.errs.add(&Error{Pos: c.file.position(yamlPlace(y)), Text: fmt.Sprintf(format, args...)})
		c.stopped = len(c.errs) > maxErrors
	}
}

// stop reports what makes the rest pointless, where the file says it.
func (c *converter) stop(y *yaml.Node, format string, args ...any) {
	if c.alias != nil {
		y = c.alias
	}
	c.fail(y, format, args...)
	c.stopped = true
}

func (c *converter) count(y *yaml.Node) {
	c.made++
	if c.alias == nil {
		c.written++
	} else if c.made > 10*c.written+100_000 {
		c.stop(y, "aliases stand for more than ten times what is written")
	}
}

// convert returns the node that y stands for.
func (c *converter) convert(y *yaml.Node, depth int) *node {
	n := &node{file: c.file, at: yamlPlace(y), text: y.Value}
	if y.Kind == yaml.AliasNode {
		return c.follow(y, depth)
	}
	if c.count(y); depth > maxDepth {
		c.stop(y, "%s", errDeep)
	}
	if c.stopped {
		return n
	}
	if y.Anchor != "" {
		c.open[y] = true
		defer delete(c.open, y)
	}
	if y.Style&yaml.TaggedStyle != 0 && !slices.Contains(tags, y.Tag) {
		c.fail(y, "unknown tag %q", y.Tag)
	}
	switch y.Kind {
	case yaml.ScalarNode:
		n.kind = scalarKind(y)
	case yaml.SequenceNode:
		n.kind = list
		for _, item := range y.Content {
			n.kids = append(n.kids, c.convert(item, depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapping
		c.fields(y, n, depth)
	}
	return n
}

// follow returns what an alias refers to, as if it were written there.
func (c *converter) follow(y *yaml.Node, depth int) *node {
	if c.open[y.Alias] {
		c.stop(y, "the alias %q refers to itself", "*"+y.Value)
		return &node{file: c.file, at: yamlPlace(y)}
	}
	if c.alias == nil {
		c.alias = y
		defer func() { c.alias = nil }()
	}
	n := c.convert(y.Alias, depth)
	n.at = yamlPlace(y)
	return n
}

// tags are those that YAML itself gives a meaning here.
var tags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map"}

func scalarKind(y *yaml.Node) kind {
	const text = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case y.Style&text != 0, y.Style&yaml.TaggedStyle != 0 && y.Tag == "!!str":
		return quoted
	case y.Tag == "!!null":
		return null
	}
	return plain
}

// fields fills the mapping n. The values of a merge key (<<) stand behind those
// that the mapping has itself.
func (c *converter) fields(y *yaml.Node, n *node, depth int) {
	seen := make(map[string]int, len(y.Content)/2)
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, value := y.Content[i], y.Content[i+1]
		key := c.key(k)
		if first, doubled := seen[key]; doubled {
			c.fail(k, "%q: doubled key, first on line %d", key, first)
			continue
		}
		seen[key] = k.Line
		if k.Tag == "!!merge" {
			merged = c.sources(value, depth)
			continue
		}
		kid := c.convert(value, depth+1)
		kid.key, kid.keyAt = key, yamlPlace(k)
		n.kids = append(n.kids, kid)
	}
	for _, source := range merged {
		for _, kid := range source.kids {
			if _, own := seen[kid.key]; !own {
				seen[kid.key] = int(kid.keyAt.line)
				n.kids = append(n.kids, kid)
			}
		}
	}
}

// sources returns the mappings that the value of a merge key stands for.
func (c *converter) sources(y *yaml.Node, depth int) []*node {
	n := c.convert(y, depth)
	all := []*node{n}
	if n.kind == list {
		all = n.kids
	}
	if slices.ContainsFunc(all, func(n *node) bool { return n.kind != mapping }) {
		c.fail(y, "want a mapping, or a list of mappings, to merge")
		return nil
	}
	return all
}

// key returns the name that y spells, as typed.
func (c *converter) key(y *yaml.Node) string {
	n := c.convert(y, 1)
	switch {
	case n.kind >= list:
		c.fail(y, "a list or mapping as a key: want a name")
	case n.text == "":
		c.fail(y, "an empty key: want a name")
	case n.kind == null:
		c.fail(y, "%s as a key: put it in quotes", n.text)
	}
	return n.text
}
