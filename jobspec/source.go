package jobspec

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// source hands out the jobs of all feeds: first those that are in the index, which
// were checked before, then those of pipes. Every error that is not final is an
// [Invalid], and says in d.errs all that is wrong.
type source struct {
	Options
	d       decoder
	headers []*node // of requests
	feeds   []feed
	ids     ids
	index   index
	pipes   []feed  // that have not ended
	seq     int64   // of the last job of a pipe
	files   []*file // that were opened
	opened  []*os.File
	left    []string // files to be removed once they are closed
}

func newSource(o Options) *source {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Stdin == nil {
		o.Stdin = strings.NewReader("")
	}
	return &source{
		Options: o,
		d: decoder{
			root:   &node{kind: mapping},
			values: values{vars: make(map[string]string), public: make(map[string]bool), lookup: o.Env, known: make(map[string]string)},
		},
		headers: o.Requests.nodes(),
		ids:     newIDs(),
		index:   newIndex(o.InOrder),
	}
}

// check reads all jobs that can be read twice, and lists them in the index.
func (s *source) check() error {
	errs := s.d.errs
	s.d.checking = true
	secrets, before := len(s.d.secrets), 0 // jobs that did not know all secrets
	for _, f := range s.feeds {
		if f.piped() {
			s.pipes = append(s.pipes, f)
			continue
		}
		s.index.begin(f)
		for e, err := range entries(f) {
			s.d.errs = nil
			if err = s.d.errs.take(err); err != nil {
				return err
			}
			if len(s.d.errs) == 0 {
				j, equals := s.claim(e, false)
				s.index.add(e, j, equals, s.Shard.Has(j.ID))
			}
			if len(s.d.secrets) > secrets {
				secrets, before = len(s.d.secrets), s.index.count-1
			}
			if errs.add(s.d.errs...); len(errs) >= maxErrors {
				return errs
			}
		}
	}
	for number := 0; number < before && len(errs) < maxErrors; number++ {
		if _, _, err := s.reread(number); err != nil {
			return err
		}
		errs.add(s.d.errs...)
	}
	s.seq, s.ids.next = int64(s.index.count), int32(s.index.count)+1
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// begin makes the source ready for its first job.
func (s *source) begin() {
	s.index.fill()
	s.d.checking = false
	if len(s.pipes) == 0 {
		s.ids = ids{}
	}
}

// Next returns the next job.
func (s *source) Next() (*Job, error) {
	if number, from, ok := s.index.take(); ok {
		return s.again(number, from)
	}
	for len(s.pipes) > 0 {
		s.d.errs = nil
		e, err := s.pipes[0].next()
		if err == io.EOF {
			s.pipes = s.pipes[1:]
			continue
		}
		if err = s.d.errs.take(err); err != nil {
			return nil, err
		}
		var j *Job
		if len(s.d.errs) == 0 {
			j, _ = s.claim(e, true)
		}
		if len(s.d.errs) > 0 {
			return nil, invalid(s.d.errs, e.item)
		}
		if !s.Shard.Has(j.ID) {
			continue
		}
		now := time.Now()
		j.Deadline, j.NotBefore = j.Deadline.from(now), j.NotBefore.from(now)
		s.seq++
		j.Seq = s.seq
		return j, nil
	}
	return nil, io.EOF
}

// Hidden is [Source]'s.
func (s *source) Hidden() bool { return s.index.hidden() }

// again hands out a job that was checked.
func (s *source) again(number int, from *shelf) (*Job, error) {
	j, row, err := s.reread(number)
	if err != nil {
		return nil, err
	}
	if len(s.d.errs) > 0 {
		from.done()
		return nil, invalid(s.d.errs, row)
	}
	j.Seq, j.shelf = int64(number)+1, from
	return j, nil
}

// reread returns a job in the index; d.errs says what is wrong with it.
func (s *source) reread(number int) (*Job, *item, error) {
	s.d.errs = nil
	e, err := s.index.of(number).find(*s.index.spot(number))
	if err = s.d.errs.take(err); err != nil || len(s.d.errs) > 0 {
		return nil, e.item, err
	}
	return s.d.read(e, func(hash string) string { return unnamed(hash, s.index.equals[number]) }), e.item, nil
}

// claim returns the job that an entry describes, and sees that its id and the file
// it saves into are its own. Of a job without an id it says how many equal ones are
// in front.
func (s *source) claim(e entry, piped bool) (j *Job, equals int) {
	j = s.d.read(e, func(hash string) string {
		equals = s.ids.equalsOf(unnamed(hash, 0))
		return unnamed(hash, equals)
	})
	if piped && len(s.d.errs) > 0 || j.ID == "" {
		return j, equals // another line may have its id
	}
	number := s.index.count
	if piped {
		number = s.ids.number(e.file, e.line)
	}
	if first, taken := s.ids.claim(s.ids.owners, j.ID, number); taken {
		s.doubled(cmp.Or(e.n.get("id"), e.n), "id", j.ID, first)
		if piped {
			return j, equals // another line may have its file
		}
	}
	if j.Output.Save == "" {
		return j, equals
	}
	save := filepath.Clean(j.Output.Save)
	if first, taken := s.ids.claim(s.ids.saves, save, number); taken {
		s.doubled(cmp.Or(e.n.get("output").get("save"), e.n), "file", save, first)
	}
	return j, equals
}

// doubled reports that the job first has what n names.
func (s *source) doubled(n *node, what, name string, first int32) {
	hint := ""
	if what == "id" && s.d.item != nil {
		hint = "; rows without an id get one each"
	}
	s.d.fail(n, "%q: doubled %s, first at %s%s", name, what, s.position(int(first)), hint)
}

// position says where the job of a number is.
func (s *source) position(number int) Position {
	if number < s.index.count {
		return s.index.of(number).file.position(place{line: s.index.spot(number).line})
	}
	var pipe *file
	for _, f := range s.files {
		if f.first > 0 && int(f.first) <= number && (pipe == nil || f.first > pipe.first) {
			pipe = f
		}
	}
	return pipe.position(place{line: int32(number) - pipe.first})
}

// from makes w absolute for a run that started at start.
func (w When) from(start time.Time) When {
	if w.Set && w.At.IsZero() {
		w.At = start.Add(w.After)
	}
	return w
}
