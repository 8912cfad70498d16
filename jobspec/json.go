package jobspec

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonParser makes nodes of JSON values, one after the other. Nodes are used again
// once they are said to be free. jsontext itself refuses doubled names and
// bytes that are not UTF-8 (RFC 7493, section 2).
type jsonParser struct {
	file  *file
	in    bytes.Reader
	dec   *jsontext.Decoder
	data  []byte
	text  string // data, which all texts are parts of
	at    place  // of the last value
	seen  int    // bytes of data in front of it
	flat  bool   // what is in the values of an object stays text, as it is typed
	names map[string]string
	nodes []node
	free  []node // those of nodes that are not in use
}

func newJSONParser(f *file) *jsonParser {
	p := &jsonParser{file: f, names: make(map[string]string)}
	p.dec = jsontext.NewDecoder(&p.in)
	return p
}

// parseJSON reads the one value in data.
func parseJSON(f *file, data []byte) (*node, error) { return newJSONParser(f).parse(data, 1) }

// reuse says that no node that was made is used any more.
func (p *jsonParser) reuse() { p.free = p.nodes }

// parse reads the one value in data, which starts at line. What no job file may
// hold is the error rather than what the parser says of it.
func (p *jsonParser) parse(data []byte, line int32) (*node, error) {
	p.data, p.text, p.seen, p.at = data, string(data), 0, place{line, 1}
	p.in.Reset(data)
	p.dec.Reset(&p.in)
	n, err := p.value(1)
	if err == nil {
		var more jsontext.Value
		if more, err = p.dec.ReadValue(); err == io.EOF {
			return n, nil
		}
		if err == nil {
			p.place(len(more))
			err = errors.New("more than one value")
		}
	}
	return nil, cmp.Or(checkText(p.file, data, line), error(p.fault(err)))
}

// fault says what is wrong, and where.
func (p *jsonParser) fault(err error) *Error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		p.at = p.at.after(p.data[p.seen:])
		return &Error{Pos: p.file.position(p.at), Text: "the JSON value is cut short"}
	}
	if syntax, found := errors.AsType[*jsontext.SyntacticError](err); found {
		p.at = p.at.after(p.data[p.seen:max(p.seen, int(syntax.ByteOffset))])
		if err = syntax.Err; errors.Is(err, jsontext.ErrDuplicateName) {
			err = errors.New("doubled key " + strconv.Quote(syntax.JSONPointer.LastToken()))
		}
	}
	return &Error{Pos: p.file.position(p.at), Text: strings.TrimPrefix(err.Error(), "jsontext: ")}
}

// place returns where the last size bytes that were read begin.
func (p *jsonParser) place(size int) place {
	begin := int(p.dec.InputOffset()) - size
	p.at = p.at.after(p.data[p.seen:begin])
	p.seen = begin
	return p.at
}

func (p *jsonParser) value(depth int) (*node, error) {
	opening := p.dec.PeekKind()
	if opening != '{' && opening != '[' || p.flat && depth > 1 {
		return p.scalar()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := p.node(list, 1)
	if opening == '{' {
		n.kind = mapping
	}
	if depth > maxDepth {
		return nil, errors.New(errDeep)
	}
	closing := opening + 2 // as ASCII has them
	for p.dec.PeekKind() != closing {
		var key string
		var keyAt place
		if n.kind == mapping {
			raw, err := p.dec.ReadValue()
			if err != nil {
				return nil, err
			}
			key, keyAt = p.name(raw), p.place(len(raw))
		}
		kid, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		kid.key, kid.keyAt = key, keyAt
		n.kids = append(n.kids, kid)
	}
	_, err := p.dec.ReadToken()
	return n, err
}

func (p *jsonParser) scalar() (*node, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	n := p.node(number, len(raw))
	n.text = p.text[p.seen : p.seen+len(raw)]
	switch raw.Kind() {
	case '"':
		n.kind, n.text = quoted, unquote(n.text)
	case 'n':
		n.kind = null
	case 't', 'f':
		n.kind = boolean
	}
	return n, nil
}

// node returns a node for the value that was just read, or begun with size bytes.
func (p *jsonParser) node(k kind, size int) *node {
	if len(p.free) == 0 {
		p.nodes = make([]node, 2*len(p.nodes)+32)
		p.free = p.nodes
	}
	n := &p.free[0]
	p.free = p.free[1:]
	*n = node{kind: k, file: p.file, at: p.place(size), kids: n.kids[:0]}
	return n
}

// name returns the string that raw spells. Most names come again in every line,
// so a few are kept.
func (p *jsonParser) name(raw jsontext.Value) string {
	name, found := p.names[string(raw)]
	if !found {
		name = unquote(string(raw))
		if len(p.names) < 100 {
			p.names[string(raw)] = name
		}
	}
	return name
}

func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}
