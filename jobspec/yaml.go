package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// parseYAML reads the one document in data. What the parser itself lets pass
// (doubled keys, unknown tags, a second document, aliases that refer to
// themselves or blow up, deep nesting) is refused here. The node is nil if the
// document is empty or so broken that nothing can be said of the rest.
func parseYAML(f *file, data []byte) (*node, Errors) {
	data = bytes.TrimPrefix(data, byteMark)
	if err := checkText(f, data, place{1, 1}); err != nil {
		return nil, Errors{err}
	}
	if err := checkTabs(f, data); err != nil {
		return nil, Errors{err}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, Errors{yamlError(f, err)}
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, Errors{{Pos: f.position(yamlPlace(&second)), Text: "a second document: want one a file"}}
	case !errors.Is(err, io.EOF):
		return nil, Errors{yamlError(f, err)}
	}
	c := converter{file: f, anchors: make(map[*yaml.Node]*anchor)}
	n, _ := c.convert(doc.Content[0], 1)
	return n, c.errs
}

var yamlMessage = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)`)

// yamlError gives a syntax error the form of all others.
func yamlError(f *file, err error) *Error {
	e := &Error{Pos: Position{File: f.name}, Text: err.Error()}
	if m := yamlMessage.FindStringSubmatch(e.Text); m != nil {
		e.Pos.Line, _ = strconv.Atoi(m[1])
		e.Text = m[2]
	}
	if strings.HasPrefix(e.Text, "exceeded max depth") {
		e.Text = errDeep
	}
	return e
}

var errDeep = fmt.Sprintf("nested more than %d deep", maxDepth)

func yamlPlace(y *yaml.Node) place { return place{int32(y.Line), int32(y.Column)} }

// blockText matches a line that opens a block of text.
var blockText = regexp.MustCompile(`(^|[\s:-])[|>][-+0-9]*\s*(#.*)?$`)

// checkTabs refuses tabs in the indentation of a line. Within a block of text a
// tab behind the block's indentation is text.
func checkTabs(f *file, data []byte) *Error {
	block := -1 // indentation of the line that opened a block of text
	number := int32(0)
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		rest := bytes.TrimLeft(line, " ")
		indent := len(line) - len(rest)
		content := bytes.TrimLeft(rest, " \t")
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		if block >= 0 && indent > block {
			continue
		}
		if rest[0] == '\t' {
			return &Error{Pos: f.position(place{number, int32(indent) + 1}), Text: "a tab in the indentation: indent with spaces"}
		}
		block = -1
		if blockText.Match(line) {
			block = indent
		}
	}
	return nil
}

// converter makes nodes of a YAML tree.
type converter struct {
	file    *file
	anchors map[*yaml.Node]*anchor
	written int // nodes in the file
	reached int // nodes with every alias counted as what it stands for
	errs    Errors
	stopped bool // an error makes the rest pointless
}

// anchor is an anchored value that aliases may stand for.
type anchor struct {
	node   *node // nil as long as it is being made
	size   int
	height int
}

func (c *converter) fail(y *yaml.Node, format string, args ...any) {
	c.errs.add(&Error{Pos: c.file.position(yamlPlace(y)), Text: fmt.Sprintf(format, args...)})
}

func (c *converter) stop(y *yaml.Node, format string, args ...any) {
	if !c.stopped {
		c.fail(y, format, args...)
	}
	c.stopped = true
}

// convert returns the node that y stands for and how many levels it has.
func (c *converter) convert(y *yaml.Node, depth int) (n *node, height int) {
	n = &node{file: c.file, at: yamlPlace(y), text: y.Value}
	if depth > maxDepth {
		c.stop(y, "%s", errDeep)
	}
	if c.stopped || len(c.errs) > maxErrors {
		return n, 1
	}
	if y.Kind == yaml.AliasNode {
		return c.alias(y, n, depth)
	}
	before := c.reached
	c.written++
	c.reached++
	a := &anchor{}
	if y.Anchor != "" {
		c.anchors[y] = a
	}
	c.checkTag(y)
	switch y.Kind {
	case yaml.ScalarNode:
		n.kind = scalarKind(y)
	case yaml.SequenceNode:
		n.kind = list
		for _, item := range y.Content {
			kid, h := c.convert(item, depth+1)
			n.kids = append(n.kids, kid)
			height = max(height, h)
		}
	case yaml.MappingNode:
		n.kind = mapping
		height = c.fields(y, n, depth)
	}
	height++
	*a = anchor{n, c.reached - before, height}
	return n, height
}

// tagKinds are the tags that a value may have, with what they fit.
var tagKinds = map[string]yaml.Kind{
	"!!str": yaml.ScalarNode, "!!int": yaml.ScalarNode, "!!float": yaml.ScalarNode, "!!bool": yaml.ScalarNode,
	"!!null": yaml.ScalarNode, "!!seq": yaml.SequenceNode, "!!map": yaml.MappingNode,
}

// checkTag refuses a tag that is unknown or does not fit its value.
func (c *converter) checkTag(y *yaml.Node) {
	if y.Style&yaml.TaggedStyle == 0 {
		return
	}
	if kind, known := tagKinds[y.Tag]; !known {
		c.fail(y, "unknown tag %q", y.Tag)
	} else if kind != y.Kind {
		c.fail(y, "the tag %q does not fit its value", y.Tag)
	}
}

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

// alias turns n, which stands where the alias was written, into what the alias
// refers to. What all aliases stand for together is bounded, so that a small
// file cannot fill the memory.
func (c *converter) alias(y *yaml.Node, n *node, depth int) (*node, int) {
	a := c.anchors[y.Alias]
	if a == nil || a.node == nil {
		c.stop(y, "the alias %q refers to itself", "*"+y.Value)
		return n, 1
	}
	c.reached += a.size
	if c.reached > 10*c.written+100_000 {
		c.stop(y, "aliases stand for more than ten times what is written")
	}
	if depth+a.height-1 > maxDepth {
		c.stop(y, "%s", errDeep)
	}
	n.kind, n.text, n.kids = a.node.kind, a.node.text, a.node.kids
	return n, a.height
}

// fields fills the mapping n and returns how many levels its values have. The
// values of a merge key (<<) stand behind those that the mapping has itself.
func (c *converter) fields(y *yaml.Node, n *node, depth int) (height int) {
	seen := make(map[string]place, len(y.Content)/2)
	var merges []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		key := c.key(k)
		if first, doubled := seen[key]; doubled {
			c.fail(k, "%q: doubled key, first on line %d", key, first.line)
			continue
		}
		seen[key] = yamlPlace(k)
		if k.Tag == "!!merge" {
			source, h := c.convert(y.Content[i+1], depth)
			height = max(height, h-1)
			merges = append(merges, c.sources(source)...)
			continue
		}
		kid, h := c.convert(y.Content[i+1], depth+1)
		kid.key, kid.keyAt = key, yamlPlace(k)
		height = max(height, h)
		n.kids = append(n.kids, kid)
	}
	for _, source := range merges {
		for _, kid := range source.kids {
			if _, own := seen[kid.key]; !own {
				seen[kid.key] = kid.keyAt
				n.kids = append(n.kids, kid)
			}
		}
	}
	return height
}

// sources returns the mappings that a merge key names.
func (c *converter) sources(n *node) []*node {
	all := []*node{n}
	if n.kind == list {
		all = n.kids
	}
	if slices.ContainsFunc(all, func(n *node) bool { return n.kind != mapping }) && !c.stopped {
		c.errs.add(&Error{Pos: n.pos(), Text: "want a mapping, or a list of mappings, to merge"})
		return nil
	}
	return all
}

// key returns the name that y spells, as typed.
func (c *converter) key(y *yaml.Node) string {
	c.written++
	c.reached++
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	c.checkTag(y)
	switch {
	case y.Kind != yaml.ScalarNode:
		c.fail(y, "a list or mapping as a key: want a name")
	case y.Value == "":
		c.fail(y, "an empty key: want a name")
	case scalarKind(y) == null:
		c.fail(y, "%s as a key: put it in quotes", y.Value)
	}
	return y.Value
}
