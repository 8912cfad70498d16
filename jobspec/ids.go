package jobspec

import (
	"fmt"
	"hash/maphash"
)

// ids knows the ids of a run, and the files that its jobs save into, by a 64-bit
// hash, since a run may have millions: of a million ids, two meet by chance in one
// run of 40 million.
type ids struct {
	seed   maphash.Seed
	owners map[hashed]int32 // numbers of jobs: in the index, then of the lines of pipes
	next   int32            // number behind all that were given; above 0
	saves  map[hashed]int32 // by cleaned path
	equal  map[hashed]int   // how many jobs without an id have one hash, but for the first
}

// hashed is a 64-bit hash, in halves so that entries of a map need no padding.
type hashed [2]uint32

func newIDs() ids {
	return ids{seed: maphash.MakeSeed(), owners: make(map[hashed]int32), saves: make(map[hashed]int32), equal: make(map[hashed]int)}
}

// number returns what stands for a line of a pipe. Pipes are read one behind the other.
func (t *ids) number(f *file, line int32) int {
	if f.first == 0 {
		f.first = t.next
	}
	t.next = f.first + line + 1
	return int(f.first + line)
}

func (t *ids) hash(name string) hashed {
	sum := maphash.String(t.seed, name)
	return hashed{uint32(sum), uint32(sum >> 32)}
}

// unnamed returns the id of a job that names none, if so many with its hash are in
// front of it.
func unnamed(hash string, equals int) string {
	id := hash[len("sha256:"):][:12]
	if equals == 0 {
		return id
	}
	return fmt.Sprintf("%s-%d", id, equals+1)
}

// equalsOf returns how many jobs have asked for an id without being the first.
func (t *ids) equalsOf(id string) int {
	key := t.hash(id)
	if _, taken := t.owners[key]; taken {
		t.equal[key]++
	}
	return t.equal[key]
}

// claim gives name to the job of that number, or returns which of owners has it.
func (t *ids) claim(owners map[hashed]int32, name string, number int) (first int32, taken bool) {
	key := t.hash(name)
	if first, taken = owners[key]; !taken {
		owners[key] = int32(number)
	}
	return first, taken
}
