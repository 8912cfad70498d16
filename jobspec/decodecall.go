package jobspec

import (
	"path/filepath"
	"strconv"
)

// hash adds one setting to what the job's hash covers: its block, its name and
// its value. Settings come in a fixed order, and those that are absent are left
// out, so that a new one does not change the hashes of old jobs.
func (d *decoder) hash(block, name, value string) {
	for _, s := range [...]string{block, name, value} {
		d.hashed = strconv.AppendInt(d.hashed, int64(len(s)), 10)
		d.hashed = append(d.hashed, ':')
		d.hashed = append(d.hashed, s...)
	}
}

// text returns a text of a call with its references put in, and hashes it. It
// must not be empty.
func (d *decoder) text(block string, n *node) string {
	return d.insert(block, n.key, n, d.str(n))
}

// textOrEmpty is text for where an empty text in quotes means something.
func (d *decoder) textOrEmpty(block string, n *node) string {
	return d.insert(block, n.key, n, d.strOrEmpty(n))
}

func (d *decoder) insert(block, name string, n *node, s string) string {
	value, named := d.expand(n, s, openRefs|secretRefs|jobRefs)
	d.hash(block, name, named)
	return value
}

// filePath returns a path, relative to the file that it is written in.
func (d *decoder) filePath(block string, n *node) string { return n.file.path(d.text(block, n)) }

func (f *file) path(p string) string {
	if p == "" || f.dir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}
