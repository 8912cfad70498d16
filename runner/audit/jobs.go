package audit

import (
	"cmp"
	"iter"
	"regexp"
	"slices"

	"agentlimit/limits"
)

// ending is what tells whether a job ended once.
type ending struct {
	id                 string
	hash               uint64 // of its hash
	at                 limits.Time
	run                int32 // its number
	succeeded, invalid bool
}

// judgeJobs looks for jobs that were lost, doubled or never asked for. Jobs may
// be nil: then any job may have a record, and none must.
func (b *book) judgeJobs(jobs iter.Seq[string]) {
	slices.SortFunc(b.endings, func(a, b ending) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at), cmp.Compare(a.run, b.run))
	})
	expected := make([]bool, len(b.endings)) // at the first ending of each id
	if jobs != nil {
		for id := range jobs {
			i, found := slices.BinarySearchFunc(b.endings, id, func(e ending, id string) int { return cmp.Compare(e.id, id) })
			if found {
				expected[i] = true
			} else {
				b.report(Lost, limits.Key{}, id, 0, "job %q has no record", id)
			}
		}
	}
	for first, end := 0, 0; first < len(b.endings); first = end {
		for end = first; end < len(b.endings) && b.endings[end].id == b.endings[first].id; end++ {
		}
		e := b.endings[first]
		if jobs != nil && !expected[first] && !e.invalid {
			b.report(Unexpected, limits.Key{}, e.id, e.at, "job %q is in no job file", e.id)
		}
		b.judgeEndings(b.endings[first:end])
	}
}

// placeInFile is the end of the id of an invalid record.
var placeInFile = regexp.MustCompile(`(:\d+){1,2}$`)

// judgeBad looks for bad lines of the job files that were lost.
func (b *book) judgeBad(places []string) {
	have := make(map[string]int)
	for _, e := range b.endings {
		if e.invalid {
			have[placeInFile.FindString(e.id)]++
		}
	}
	for _, place := range places {
		at := placeInFile.FindString(place)
		if have[at]--; have[at] < 0 {
			b.report(Lost, limits.Key{}, "", 0, "the bad line %s has no record", place)
		}
	}
}

// judgeEndings takes the records of one job, the oldest first. A job may have a
// record in several runs, but none after it succeeded, unless it was changed.
func (b *book) judgeEndings(list []ending) {
	if len(list) == 1 {
		return
	}
	runs := make(map[int32]bool)
	var done *ending
	for i, e := range list {
		switch {
		case runs[e.run]:
			b.report(Doubled, limits.Key{}, e.id, e.at, "job %q has two records of one run", e.id)
		case done != nil && done.hash == e.hash:
			b.report(Doubled, limits.Key{}, e.id, e.at, "job %q was taken up again after it had succeeded", e.id)
		}
		runs[e.run] = true
		if e.succeeded {
			done = &list[i]
		}
	}
}
