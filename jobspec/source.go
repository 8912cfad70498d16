package jobspec

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"time"
)

// source hands out the jobs of all parts. Every error that is not final is an
// [Invalid], and says in d.errs all that is wrong: the files may have been
// changed since they were checked.
type source struct {
	d     decoder
	parts []*part
	ids   ids
	seq   int64

	closes bool        // each part once it is read
	at     int         // the current part
	index  int         // the next job of its document
	lines  *lineReader // of its lines; nil: not begun
}

func newSource(r *rules) *source {
	return &source{
		d:   decoder{rules: r},
		ids: ids{maphash.MakeSeed(), make(map[uint64]owner), make(map[uint64]int)},
	}
}

// begin makes s hand out the jobs of parts from the first on. The memory for ids
// is used again.
func (s *source) begin(parts []*part) error {
	for _, p := range parts {
		if err := p.rewind(); err != nil {
			return fmt.Errorf("read job file: %w", err)
		}
	}
	clear(s.ids.owners)
	clear(s.ids.equal)
	s.parts, s.at, s.index, s.lines, s.seq = parts, 0, 0, nil, 0
	return nil
}

// Next returns the next job.
func (s *source) Next() (*Job, error) {
	for ; s.at < len(s.parts); s.at, s.index, s.lines = s.at+1, 0, nil {
		p := s.parts[s.at]
		s.d.errs = nil
		n, path, err := s.read(p)
		if err == io.EOF {
			if s.closes {
				p.close()
			}
			continue
		}
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) {
				return nil, err
			}
			s.d.errs.add(bad)
			return nil, invalid(s.d.errs)
		}
		j := s.job(p, n, path)
		if len(s.d.errs) > 0 {
			return nil, invalid(s.d.errs)
		}
		s.seq++
		j.Seq = s.seq
		return j, nil
	}
	return nil, io.EOF
}

// read returns the next node of p that should be a job, and its path.
func (s *source) read(p *part) (*node, string, error) {
	if p.lines != nil {
		if s.lines == nil {
			s.lines = newLineReader(p)
		}
		n, err := s.lines.next()
		return n, "", err
	}
	jobs := p.root.get("jobs").items()
	if s.index == len(jobs) {
		return nil, "", io.EOF
	}
	s.index++
	return jobs[s.index-1], "jobs[" + strconv.Itoa(s.index-1) + "]", nil
}

// job decodes a job and sees that its id is its own.
func (s *source) job(p *part, n *node, path string) *Job {
	j := s.d.job(n, path, s.ids.unnamed)
	if p.piped() {
		if len(s.d.errs) > 0 {
			return j // another line may have its id
		}
		now := time.Now()
		j.Deadline, j.NotBefore = j.Deadline.from(now), j.NotBefore.from(now)
	}
	if j.ID == "" {
		return j
	}
	o := owner{uint32(j.Pos.Line), uint16(s.at), s.d.named}
	if first, taken := s.ids.claim(j.ID, o); taken {
		at := n.get("id")
		if at == nil {
			at = n
		}
		s.d.fail(at, "%q: doubled id, first at %s:%d", j.ID, s.parts[first.file].file.name, first.line)
	}
	return j
}

// from makes w absolute for a run that started at start.
func (w When) from(start time.Time) When {
	if w.Set && w.At.IsZero() {
		w.At = start.Add(w.After)
	}
	return w
}

// ids knows the ids of a run by a 64-bit hash, since a run may have millions: of
// a million ids, two meet by chance in one run of 40 million.
type ids struct {
	seed   maphash.Seed
	owners map[uint64]owner
	equal  map[uint64]int // how many jobs without an id have one hash, above one
}

// owner is the job that has an id. It is kept small.
type owner struct {
	line  uint32
	file  uint16
	named bool // the job names its id
}

// unnamed returns the id of a job that names none.
func (t *ids) unnamed(hash string) string {
	id := hash[len("sha256:"):][:12]
	key := maphash.String(t.seed, id)
	if o, found := t.owners[key]; !found || o.named {
		return id
	}
	t.equal[key] = max(1, t.equal[key]) + 1
	return fmt.Sprintf("%s-%d", id, t.equal[key])
}

// claim gives id to o, or returns who has it.
func (t *ids) claim(id string, o owner) (first owner, taken bool) {
	key := maphash.String(t.seed, id)
	if first, taken = t.owners[key]; !taken {
		t.owners[key] = o
	}
	return first, taken
}
