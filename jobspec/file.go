package jobspec

import (
	"bufio"
	"bytes"
	"cmp"
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

// byteMark is the mark that some editors put in front of UTF-8.
var byteMark = []byte("\xef\xbb\xbf")

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
func (p *part) load(told string) (*node, error) {
	format := p.format(told)
	if format == "jsonl" {
		p.parser = newJSONParser(p.file)
		p.scan()
		info, err := p.disk.Stat() // of a nil file: an error
		p.piped = err != nil || !info.Mode().IsRegular()
		return nil, nil
	}
	data, err := io.ReadAll(p.in)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, byteMark)
	if err := checkText(p.file, data, 1); err != nil {
		return nil, err
	}
	if format == "json" {
		return newJSONParser(p.file).parse(data, 1)
	}
	return parseYAML(p.file, data)
}

func (p *part) scan() {
	p.lines = bufio.NewScanner(p.in)
	p.lines.Buffer(make([]byte, 64<<10), maxLine)
}

// format says how to read the part: by the file's name, else as told, else by
// its first line.
func (p *part) format(told string) string {
	switch strings.ToLower(filepath.Ext(p.file.name)) {
	case ".yaml", ".yml":
		return "yaml"
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".json":
		return "json"
	}
	if told != "" {
		return told
	}
	r := bufio.NewReader(p.in)
	var head []byte
	var err error // will be met again
	for err == nil && len(bytes.TrimSpace(head)) == 0 {
		var line []byte
		line, err = r.ReadBytes('\n')
		head = append(head, line...)
	}
	p.in = io.MultiReader(bytes.NewReader(head), r)
	n, err := newJSONParser(p.file).parse(bytes.TrimPrefix(head, byteMark), 1)
	if err == nil && (n.get("http") != nil || n.get("exec") != nil) {
		return "jsonl"
	}
	return "yaml"
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
		n, err := p.parser.parse(line, p.read)
		if err != nil {
			err = cmp.Or(checkText(p.file, line, p.read), err)
		}
		return n, "", err
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

// checkText refuses what no job file may hold: UTF-16, bytes that are not UTF-8,
// and NUL. The data begins on a line of that number.
func checkText(f *file, data []byte, line int) error {
	fault := func(at int, text string) error {
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
