package jobspec

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
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
			values: values{vars: make(map[string]string), public: make(map[string]bool), lookup: o.Env, env: make(map[string]string)},
		},
		ids: ids{maphash.MakeSeed(), make(map[uint64]owner), make(map[uint64]owner), make(map[uint64]int)},
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
	clear(s.ids.saves)
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

// next returns the next job of p and sees that its id and its file are its own.
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
	here := owner{int32(j.Pos.Line), int32(s.at)}
	if first, taken := s.ids.claim(s.ids.owners, j.ID, here); taken {
		s.doubled(cmp.Or(n.get("id"), n), "id", j.ID, first)
		if p.piped {
			return j, nil // another line may have its file
		}
	}
	if j.Output.Save == "" {
		return j, nil
	}
	save := filepath.Clean(j.Output.Save)
	if first, taken := s.ids.claim(s.ids.saves, save, here); taken {
		s.doubled(cmp.Or(n.get("output").get("save"), n), "file", save, first)
	}
	return j, nil
}

// doubled reports that the job first has what n names.
func (s *source) doubled(n *node, what, name string, first owner) {
	s.d.fail(n, "%q: doubled %s, first at %s:%d", name, what, s.parts[first.part].file.name, first.line)
}

// from makes w absolute for a run that started at start.
func (w When) from(start time.Time) When {
	if w.Set && w.At.IsZero() {
		w.At = start.Add(w.After)
	}
	return w
}

// ids knows the ids of a run, and the files that its jobs save into, by a 64-bit
// hash, since a run may have millions: of a million ids, two meet by chance in one
// run of 40 million.
type ids struct {
	seed   maphash.Seed
	owners map[uint64]owner
	saves  map[uint64]owner // by cleaned path
	equal  map[uint64]int   // how many jobs without an id have one hash, but for the first
}

// owner is the place of the job that has an id or a file.
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

// claim gives name to o, or returns who of owners has it.
func (t *ids) claim(owners map[uint64]owner, name string, o owner) (first owner, taken bool) {
	key := maphash.String(t.seed, name)
	if first, taken = owners[key]; !taken {
		owners[key] = o
	}
	return first, taken
}
