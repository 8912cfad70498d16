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
	"unicode/utf8"
)

// part is what one file brings to a run: a document, or lines.
type part struct {
	file   *file
	in     io.Reader
	disk   *os.File       // nil: standard input
	jobs   []*node        // of a document
	lines  *bufio.Scanner // nil: a document
	parser *jsonParser    // of lines
	piped  bool           // the lines can be read only once
	read   int            // how many jobs or lines were read
}

// maxLine bounds a line of JSON Lines; a larger body belongs into a file.
const maxLine = 16 << 20

// open opens a file. The part must be closed whatever comes with it.
func open(name string, stdin io.Reader) (*part, error) {
	p := &part{file: newFile(name), in: stdin}
	if name == "-" {
		if stdin == nil {
			p.in = strings.NewReader("")
		}
		return p, nil
	}
	var err error
	p.disk, err = os.Open(name)
	p.in = p.disk
	return p, err
}

// close closes the file; it was only read, so no error matters.
func (p *part) close() {
	if p.disk != nil {
		p.disk.Close()
	}
}

// load reads a document whole and returns it. With JSON Lines it returns nil:
// next reads them.
func (p *part) load(told string) (root *node, errs Errors, err error) {
	format, err := p.format(told)
	if err != nil {
		return nil, nil, err
	}
	if format == "jsonl" {
		p.parser = newJSONParser(p.file)
		p.scan()
		info, err := p.disk.Stat() // of a nil file: an error
		p.piped = err != nil || !info.Mode().IsRegular()
		return nil, nil, nil
	}
	data, err := io.ReadAll(p.in)
	if err == nil {
		root, errs = parseDocument(p.file, format, bytes.TrimPrefix(data, byteMark))
	}
	return root, errs, err
}

func (p *part) scan() {
	p.lines = bufio.NewScanner(p.in)
	p.lines.Buffer(make([]byte, 64<<10), maxLine)
}

// format says how to read the part: by the file's name, else as told, else by
// its first line.
func (p *part) format(told string) (string, error) {
	switch strings.ToLower(filepath.Ext(p.file.name)) {
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
	r := bufio.NewReader(p.in)
	var head []byte
	for len(bytes.TrimSpace(head)) == 0 {
		line, err := r.ReadBytes('\n')
		if head = append(head, line...); err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
	}
	p.in = io.MultiReader(bytes.NewReader(head), r)
	n, bad := newJSONParser(p.file).parse(bytes.TrimPrefix(head, byteMark), 1)
	if bad == nil && (n.get("http") != nil || n.get("exec") != nil) {
		return "jsonl", nil
	}
	return "yaml", nil
}

// rewind makes next begin anew.
func (p *part) rewind() (err error) {
	p.read = 0
	if p.lines != nil && !p.piped {
		_, err = p.disk.Seek(0, io.SeekStart)
		p.in = p.disk
		p.scan()
	}
	return err
}

// next returns the next value that should be a job, which is good until the
// next call, and the path to it; or io.EOF. An [*Error] stands for a bad line;
// any other error is final.
func (p *part) next() (n *node, path string, err error) {
	if p.lines == nil {
		if p.read == len(p.jobs) {
			return nil, "", io.EOF
		}
		p.read++
		return p.jobs[p.read-1], fmt.Sprintf("jobs[%d]", p.read-1), nil
	}
	for p.lines.Scan() {
		p.read++
		line := p.lines.Bytes()
		if p.read == 1 {
			line = bytes.TrimPrefix(line, byteMark)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		n, bad := p.parser.parse(line, p.read)
		if bad == nil {
			return n, "", nil
		}
		if text := checkText(p.file, line, p.read); text != nil {
			bad = text
		}
		return nil, "", bad
	}
	switch err := p.lines.Err(); {
	case err == nil:
		return nil, "", io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, "", fmt.Errorf("%s:%d: a line of over %d MiB", p.file.name, p.read+1, maxLine>>20)
	default:
		return nil, "", fmt.Errorf("read job file: %w", err)
	}
}

// byteMark is the mark that some editors put in front of UTF-8.
var byteMark = []byte("\xef\xbb\xbf")

func parseDocument(f *file, format string, data []byte) (root *node, errs Errors) {
	err := checkText(f, data, 1)
	switch {
	case err != nil:
	case format == "json":
		root, err = newJSONParser(f).parse(data, 1)
	default:
		root, errs = parseYAML(f, data)
		if root == nil && errs == nil {
			err = &Error{Pos: Position{File: f.name}, Text: "an empty file: want jobs (a stream that may be empty needs the format jsonl)"}
		}
	}
	if err != nil {
		errs = Errors{err}
	}
	return root, errs
}

// checkText refuses what no job file may hold: UTF-16, bytes that are not UTF-8,
// and NUL. The data begins on a line of that number.
func checkText(f *file, data []byte, line int) *Error {
	fault := func(at int, text string) *Error {
		return &Error{Pos: f.position(place{int32(line), 1}.after(data[:at])), Text: text}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return fault(0, "UTF-16: save the file as UTF-8")
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == 0:
			return fault(at, "a NUL byte: save the file as UTF-8 text")
		case r == utf8.RuneError && size == 1:
			return fault(at, "a byte that is not UTF-8")
		}
		at += size
	}
	return nil
}
