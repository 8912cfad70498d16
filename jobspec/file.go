package jobspec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxDocument bounds a YAML or JSON document, which is read whole.
const maxDocument = 64 << 20

// open opens a file for reading; only one can read standard input. The source
// closes the file.
func (s *source) open(f *file) (*records, error) {
	r := &records{file: f, form: lines, seed: s.ids.seed}
	s.files = append(s.files, f)
	if f.name == stdin {
		if s.Stdin == nil {
			return r, errors.New("standard input is read already")
		}
		r.in, s.Stdin = Unpack(s.Stdin), nil
		return r, nil
	}
	disk, err := os.Open(f.name)
	if err != nil {
		return r, err
	}
	s.opened = append(s.opened, disk)
	in := newUnpacker(disk)
	r.in = in
	switch info, err := disk.Stat(); {
	case err != nil:
		return r, err
	case info.IsDir():
		return r, fmt.Errorf("%q is a folder", f.name)
	case s.Piped || !info.Mode().IsRegular():
		return r, nil
	}
	r.disk = disk
	if in.begin(); in.name != "" {
		err = s.spool(r)
	}
	return r, err
}

// load opens a job file, and takes up its document, or the feed of its lines.
func (s *source) load(f *file) error {
	r, err := s.open(f)
	if err != nil {
		return err
	}
	job := (*jsonParser).parse
	switch r.format(s.Format) {
	case "yaml":
		return s.document(r, parseYAML)
	case "json":
		return s.document(r, parseJSON)
	case OpenAIBatch:
		job = s.batchLine
	case Vegeta:
		f.dir, r.form, job = "", targets, s.target // as vegeta has paths
	}
	s.feeds = append(s.feeds, newLineFeed(r, job))
	return nil
}

// document takes up a document.
func (s *source) document(r *records, parse func(*file, []byte) (*node, error)) error {
	data, err := io.ReadAll(io.LimitReader(r.in, maxDocument+1))
	switch {
	case err != nil:
		return r.file.about(err)
	case len(data) > maxDocument:
		return &Error{Pos: r.file.position(place{}), Text: fmt.Sprintf("a document of over %d MiB: want JSON Lines or for_each for so many jobs", maxDocument>>20)}
	}
	root, err := parse(r.file, bytes.TrimPrefix(data, byteMark))
	if err == nil {
		s.feeds = append(s.feeds, newListFeed(s.d.document(root), 0))
	}
	return err
}

// format says how to read a job file: by its name, else as told, else by its first
// line.
func (r *records) format(told string) string {
	switch ending := r.file.ending(); {
	case ending == ".yaml", ending == ".yml":
		return "yaml"
	case told == OpenAIBatch, told == Vegeta:
		return told
	case ending == ".jsonl", ending == ".ndjson":
		return "jsonl"
	case ending == ".json":
		return "json"
	}
	if told != "" {
		return told
	}
	in := bufio.NewReader(r.in)
	var head bytes.Buffer
	var part []byte
	var err error // will be met again
	for blank := true; (err == nil && blank || err == bufio.ErrBufferFull) && head.Len() < maxRecord; {
		part, err = in.ReadSlice('\n')
		head.Write(part)
		blank = blank && len(bytes.TrimSpace(part)) == 0
	}
	text := bytes.TrimPrefix(head.Bytes(), byteMark)
	r.in = io.MultiReader(&head, in)
	if err == bufio.ErrBufferFull { // too long for a line
		return "yaml"
	}
	n, err := parseJSON(r.file, text)
	if err == nil && (n.get("http") != nil || n.get("exec") != nil) {
		return "jsonl"
	}
	return "yaml"
}
