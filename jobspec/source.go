package jobspec

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"time"
)

// source hands out the jobs of all parts. Every error that is not final is an
// [Invalid], and says in d.errs all that is wrong: the files may have been
// changed since they were checked.
type source struct {
	d      decoder
	parts  []*part
	at     int // the current part
	ids    ids
	seq    int64
	closes bool // each part once it is read
}

func newSource(o Options) *source {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return &source{
		d: decoder{
			root:   flagVars(o.Vars),
			values: values{make(map[string]string), nil, make(map[string]bool), o.Env, make(map[string]string), nil},
		},
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
	s.parts, s.at, s.seq = parts, 0, 0
	return nil
}

// Next returns the next job.
func (s *source) Next() (*Job, error) {
	for ; s.at < len(s.parts); s.at++ {
		p := s.parts[s.at]
		s.d.errs = nil
		j, err := s.next(p)
		if err == io.EOF {
			if s.closes {
				p.close()
			}
			continue
		}
		if err = s.d.errs.take(err); err != nil {
			return nil, err
		}
		if len(s.d.errs) > 0 {
			return nil, invalid(s.d.errs)
		}
		s.seq++
		j.Seq = s.seq
		return j, nil
	}
	return nil, io.EOF
}

// next returns the next job of p and sees that its id is its own.
func (s *source) next(p *part) (*Job, error) {
	n, path, err := p.next()
	if err != nil {
		return nil, err
	}
	j := s.d.read(n, path, s.ids.unnamed)
	if p.piped {
		if len(s.d.errs) > 0 {
			return j, nil // another line may have its id
		}
		now := time.Now()
		j.Deadline, j.NotBefore = j.Deadline.from(now), j.NotBefore.from(now)
	}
	if j.ID == "" {
		return j, nil
	}
	if first, taken := s.ids.claim(j.ID, owner{int32(j.Pos.Line), int32(s.at)}); taken {
		s.d.fail(cmp.Or(n.get("id"), n), "%q: doubled id, first at %s:%d", j.ID, s.parts[first.part].file.name, first.line)
	}
	return j, nil
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
	equal  map[uint64]int // how many jobs without an id have one hash, but for the first
}

// owner is the place of the job that has an id.
type owner struct{ line, part int32 }

// unnamed returns the id of a job that names none.
func (t *ids) unnamed(hash string) string {
	id := hash[len("sha256:"):][:12]
	key := maphash.String(t.seed, id)
	if _, taken := t.owners[key]; !taken {
		return id
	}
	t.equal[key]++
	return fmt.Sprintf("%s-%d", id, t.equal[key]+1)
}

// claim gives id to o, or returns who has it.
func (t *ids) claim(id string, o owner) (first owner, taken bool) {
	key := maphash.String(t.seed, id)
	if first, taken = t.owners[key]; !taken {
		t.owners[key] = o
	}
	return first, taken
}
