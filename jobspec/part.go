package jobspec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// part is what one file brings to a run: a document, or lines.
type part struct {
	file  *file
	root  *node     // of a document
	lines io.Reader // nil: a document
	disk  *os.File  // nil: standard input, or read whole
	twice bool      // the lines can be read twice
}

// piped reports whether the part can be read only once.
func (p *part) piped() bool { return p.lines != nil && !p.twice }

func (p *part) rewind() error {
	if !p.twice {
		return nil
	}
	p.lines = p.disk
	_, err := p.disk.Seek(0, io.SeekStart)
	return err
}

// close closes the file; it was only read, so no error matters.
func (p *part) close() {
	if p.disk != nil {
		p.disk.Close()
	}
}

// openPart opens a file, and reads it whole unless it holds JSON Lines. The part
// must be closed whatever comes with it.
func openPart(name string, o Options) (p *part, errs Errors, err error) {
	p = &part{file: newFile(name), lines: o.Stdin}
	if name != "-" {
		if p.disk, err = os.Open(name); err != nil {
			return p, nil, err
		}
		p.lines = p.disk
	} else if p.lines == nil {
		p.lines = strings.NewReader("")
	}
	format, err := p.format(name, o.Format)
	if err != nil {
		return p, nil, err
	}
	if format == "jsonl" {
		if p.disk != nil {
			info, err := p.disk.Stat()
			p.twice = err == nil && info.Mode().IsRegular()
		}
		return p, nil, nil
	}
	data, err := io.ReadAll(p.lines)
	p.lines = nil
	if err != nil {
		return p, nil, err
	}
	return p, p.parse(format, data), nil
}

// format says how to read the part: by the file's name, else as told, else by
// its first line.
func (p *part) format(name, told string) (string, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return "yaml", nil
	case ".json":
		return "json", nil
	case ".jsonl", ".ndjson":
		return "jsonl", nil
	}
	if told != "" {
		return told, nil
	}
	r := bufio.NewReader(p.lines)
	var head []byte
	for len(bytes.TrimSpace(head)) == 0 {
		line, err := r.ReadBytes('\n')
		if head = append(head, line...); err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
	}
	p.lines = io.MultiReader(bytes.NewReader(head), r)
	n, bad := newJSONParser(p.file).parse(bytes.TrimPrefix(head, byteMark), 1)
	if bad == nil && (n.get("http") != nil || n.get("exec") != nil) {
		return "jsonl", nil
	}
	return "yaml", nil
}

// parse reads a document.
func (p *part) parse(format string, data []byte) (errs Errors) {
	if format == "json" {
		data = bytes.TrimPrefix(data, byteMark)
		err := checkText(p.file, data, place{1, 1})
		if err == nil {
			p.root, err = newJSONParser(p.file).parse(data, 1)
		}
		if err != nil {
			return Errors{err}
		}
	} else if p.root, errs = parseYAML(p.file, data); len(errs) > 0 {
		return errs
	}
	if p.root == nil || p.root.kind == null || p.root.kind == mapping && len(p.root.kids) == 0 {
		return Errors{{Pos: Position{File: p.file.name}, Text: "an empty file: want jobs (a stream that may be empty needs the format jsonl)"}}
	}
	if p.root.kind != mapping {
		return Errors{{Pos: p.root.pos(), Text: "want a mapping of " + strings.Join(documentKeys, ", ")}}
	}
	return nil
}

// maxLine bounds a line of JSON Lines; a larger body belongs into a file.
const maxLine = 16 << 20

// lineReader reads the lines of a part.
type lineReader struct {
	scanner *bufio.Scanner
	parser  *jsonParser
	number  int
}

func newLineReader(p *part) *lineReader {
	s := bufio.NewScanner(p.lines)
	s.Buffer(make([]byte, 64<<10), maxLine)
	return &lineReader{scanner: s, parser: newJSONParser(p.file)}
}

// next returns the next value, which is good until the next call, or io.EOF.
// An [*Error] stands for a bad line; what stops the reading is any other error.
func (r *lineReader) next() (*node, error) {
	for r.scanner.Scan() {
		r.number++
		line := r.scanner.Bytes()
		if r.number == 1 {
			line = bytes.TrimPrefix(line, byteMark)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		n, bad := r.parser.parse(line, r.number)
		if bad == nil {
			return n, nil
		}
		if text := checkText(r.parser.file, line, place{int32(r.number), 1}); text != nil {
			bad = text
		}
		return nil, bad
	}
	err := r.scanner.Err()
	switch {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: a line of over %d MiB", r.parser.file.name, r.number+1, maxLine>>20)
	}
	return nil, fmt.Errorf("read job file: %w", err)
}
