package jobspec

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonParser makes nodes of JSON values, one after the other. The nodes of a
// value are used again by the next. jsontext itself refuses doubled names and
// bytes that are not UTF-8 (RFC 7493, section 2).
type jsonParser struct {
	file  *file
	in    bytes.Reader
	dec   *jsontext.Decoder
	data  []byte
	seen  int   // bytes of data that were read
	at    place // behind them
	names map[string]string
	nodes arena
}

func newJSONParser(f *file) *jsonParser {
	p := &jsonParser{file: f, names: make(map[string]string)}
	p.dec = jsontext.NewDecoder(&p.in)
	return p
}

// parse reads the one value in data, which starts at line.
func (p *jsonParser) parse(data []byte, line int) (*node, *Error) {
	p.data, p.seen, p.at = data, 0, place{int32(line), 1}
	p.nodes.used = 0
	p.in.Reset(data)
	p.dec.Reset(&p.in)
	n, err := p.value(1)
	if err == nil {
		p.start()
		if _, err = p.dec.ReadToken(); err == io.EOF {
			return n, nil
		}
		if err == nil {
			err = errors.New("more than one value")
		}
	}
	return nil, p.fault(err)
}

// fault says what is wrong, and where.
func (p *jsonParser) fault(err error) *Error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		err = syntax.Err
		if from := int(syntax.ByteOffset); from > p.seen && from <= len(p.data) {
			p.at = p.at.after(p.data[p.seen:from])
		}
		if errors.Is(err, jsontext.ErrDuplicateName) {
			err = errors.New("doubled key " + jsontextQuote(syntax.JSONPointer.LastToken()))
		}
	}
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		text = "the JSON value is cut short"
	}
	return &Error{Pos: p.file.position(p.at), Text: text}
}

func jsontextQuote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}

// start returns the place of the next token.
func (p *jsonParser) start() place {
	end := p.seen
	for end < len(p.data) && strings.IndexByte(" \t\r\n:,", p.data[end]) >= 0 {
		end++
	}
	p.advance(end)
	return p.at
}

func (p *jsonParser) advance(end int) {
	p.at = p.at.after(p.data[p.seen:end])
	p.seen = end
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errors.New(errDeep)
	}
	n := p.nodes.next()
	n.file, n.at = p.file, p.start()
	token, err := p.dec.ReadToken()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		n.kind, n.text = null, "null"
	case 't', 'f':
		n.kind, n.text = boolean, token.String()
	case '"':
		n.kind, n.text = quoted, token.String()
	case '0':
		n.kind, n.text = plain, token.String()
	case '[':
		n.kind = list
		err = p.items(n, depth)
	case '{':
		n.kind = mapping
		err = p.fields(n, depth)
	}
	if err == nil {
		p.advance(int(p.dec.InputOffset()))
	}
	return n, err
}

func (p *jsonParser) items(n *node, depth int) error {
	p.advance(int(p.dec.InputOffset()))
	for p.dec.PeekKind() != ']' {
		kid, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, kid)
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *jsonParser) fields(n *node, depth int) error {
	p.advance(int(p.dec.InputOffset()))
	for p.dec.PeekKind() != '}' {
		at := p.start()
		name, err := p.dec.ReadValue()
		if err != nil {
			return err
		}
		key := p.name(name)
		p.advance(int(p.dec.InputOffset()))
		kid, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		kid.key, kid.keyAt = key, at
		n.kids = append(n.kids, kid)
	}
	_, err := p.dec.ReadToken()
	return err
}

// name returns the string that raw spells. Most names come again in every line,
// so a few are kept.
func (p *jsonParser) name(raw jsontext.Value) string {
	if name, found := p.names[string(raw)]; found {
		return name
	}
	name, _ := jsontext.AppendUnquote(nil, raw)
	if len(p.names) < 100 {
		p.names[string(raw)] = string(name)
	}
	return string(name)
}

// arena hands out nodes that are used again after used is set to 0.
type arena struct {
	chunks [][]node
	used   int
}

func (a *arena) next() *node {
	const size = 64
	if a.used == len(a.chunks)*size {
		a.chunks = append(a.chunks, make([]node, size))
	}
	n := &a.chunks[a.used/size][a.used%size]
	a.used++
	*n = node{kids: n.kids[:0]}
	return n
}
