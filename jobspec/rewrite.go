package jobspec

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Rewrite writes jobs of a run as a job file of their own, one JSON document,
// which [Load] reads back as the same jobs with the same ids, hashes and limits.
// The file may lie in any folder, since paths that are relative to a file become
// absolute; commands still start in the working folder, if they name none. It is
// best named .json: as YAML it may hold no empty key, and none of over 1,024
// bytes. References stay as they were typed, so no secret gets into it. A Rewrite
// is used by one goroutine at a time.
type Rewrite struct {
	w       io.Writer
	between string // in front of the next job
	err     error  // the first; nothing is written behind it
}

// mark stands in a path that was made absolute, in front of what was typed, as
// rsync has it: hashes then do not depend on where the folder is.
const mark = "/./"

// behindMark returns what was typed of a path.
func behindMark(path string) string {
	if _, typed, found := strings.Cut(path, mark); found && filepath.IsAbs(path) {
		return typed
	}
	return path
}

// NewRewrite begins a file with the limits, vars and public_env of the run. The
// run must have been loaded with [Options].Written.
func (s *Spec) NewRewrite(w io.Writer) *Rewrite {
	r := &Rewrite{w: w, between: "\n"}
	r.write(string(s.heading))
	return r
}

// Add writes a job that is not to start before a time; zero: at any time. An
// absolute deadline is left out, and dropped says which; else it is empty.
func (r *Rewrite) Add(j *Job, notBefore time.Time) (dropped string, err error) {
	job := strings.TrimSuffix(j.Written, "}")
	if !notBefore.IsZero() {
		job += `,"not_before":"` + notBefore.UTC().Format(time.RFC3339Nano) + `"`
	}
	r.write(r.between + job + "}")
	r.between = ",\n"
	if j.Deadline.Set && j.Deadline.After == 0 {
		dropped = j.Deadline.At.Format(time.RFC3339Nano)
	}
	return dropped, r.err
}

// Close ends the file, without which it is none, and returns the first error of
// writing it. It does not close the writer.
func (r *Rewrite) Close() error {
	r.write("\n]}\n")
	return r.err
}

// unreadable are characters that JSON may hold, but YAML refuses or takes for
// ends of lines. In JSON they stand in texts only.
var unreadable = regexp.MustCompile("[\x7f-\u009f\u2028\u2029\ufeff\ufffe\uffff]")

func (r *Rewrite) write(s string) {
	if r.err == nil {
		_, r.err = io.WriteString(r.w, unreadable.ReplaceAllStringFunc(s, func(c string) string {
			return fmt.Sprintf(`\u%04x`, []rune(c)[0])
		}))
	}
}

// heading returns a document up to its jobs. A var says what it stands for, also
// if a flag did.
func (d *decoder) heading() []byte {
	public := &node{kind: list, key: "public_env"}
	for _, name := range slices.Sorted(maps.Keys(d.public)) {
		public.kids = append(public.kids, &node{kind: quoted, text: name})
	}
	doc := &node{kind: mapping, kids: []*node{{kind: plain, key: "version", text: "1"}, varsNode(nil, d.vars), public}}
	if limits := d.root.get("limits"); limits != nil {
		doc.kids = slices.Insert(doc.kids, 1, limits)
	}
	b := d.json(nil, doc, forRewrite)
	return append(b[:len(b)-1], `,"jobs":[`...)
}

// written returns what j's Written says, n being what was typed and its defaults.
func written(j *Job, n *node) *node {
	id := cmp.Or(n.get("id"), &node{kind: quoted, key: "id", text: j.ID})
	kids := slices.DeleteFunc(slices.Clone(n.kids), func(kid *node) bool {
		return kid == id || kid.key == "not_before" || kid.key == "deadline" && !j.Deadline.At.IsZero()
	})
	return &node{kind: mapping, kids: slices.Insert(kids, 0, id)}
}
