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
	owners map[uint64]owner
	saves  map[uint64]owner // by cleaned path
	equal  map[uint64]int   // how many jobs without an id have one hash, but for the first
}

// owner is the place of the job that has an id or a file.
type owner struct{ line, file int32 }

func newIDs(seed maphash.Seed) ids {
	return ids{seed, make(map[uint64]owner), make(map[uint64]owner), make(map[uint64]int)}
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
	key := maphash.String(t.seed, id)
	if _, taken := t.owners[key]; taken {
		t.equal[key]++
	}
	return t.equal[key]
}

// claim gives name to o, or returns who of owners has it.
func (t *ids) claim(owners map[uint64]owner, name string, o owner) (first owner, taken bool) {
	key := maphash.String(t.seed, name)
	if first, taken = owners[key]; !taken {
		owners[key] = o
	}
	return first, taken
}
