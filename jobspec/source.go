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

func newSource(r *rules, parts []*part) *source {
	return &source{
		d:     decoder{rules: r},
		parts: parts,
		ids:   ids{seed: maphash.MakeSeed(), owners: make(map[uint64]owner)},
	}
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
	unnamed := false
	j := s.d.job(n, path, func(hash string) string {
		unnamed = true
		return s.ids.unnamed(hash)
	})
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
	if first, taken := s.ids.claim(j.ID, owner{line: uint32(j.Pos.Line), file: uint16(s.at)}, unnamed); taken {
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
}

// owner is the job that has an id.
type owner struct {
	line  uint32
	equal uint32 // how many jobs without an id have this hash; 0: it named its id
	file  uint16
}

// unnamed returns the id of a job that names none.
func (t *ids) unnamed(hash string) string {
	id := hash[len("sha256:"):][:12]
	key := maphash.String(t.seed, id)
	if o := t.owners[key]; o.equal > 0 {
		o.equal++
		t.owners[key] = o
		return fmt.Sprintf("%s-%d", id, o.equal)
	}
	return id
}

// claim gives id to o, or returns who has it.
func (t *ids) claim(id string, o owner, unnamed bool) (first owner, taken bool) {
	key := maphash.String(t.seed, id)
	if first, taken = t.owners[key]; taken {
		return first, true
	}
	if unnamed {
		o.equal = 1
	}
	t.owners[key] = o
	return o, false
}
