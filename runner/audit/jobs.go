package audit

import (
	"cmp"
	"fmt"
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

// file is records among which each job is to have ended once.
type file struct {
	name     string // empty: there is no other
	first    int    // index of its first ending
	firstRun int32  // the least number of a run of its own
}

// reportJob adds a violation that is one of the file.
func (b *book) reportJob(kind Kind, job string, at limits.Time, message string, args ...any) {
	text := fmt.Sprintf(message, args...)
	if b.file.name != "" {
		text = b.file.name + ": " + text
	}
	b.report(kind, limits.Key{}, job, at, "%s", text)
}

// judgeFiles looks in each file for what became of jobs and bad lines.
func (b *book) judgeFiles() {
	for i := range b.files {
		b.file = b.files[i]
		endings := b.endings[b.file.first:]
		if i+1 < len(b.files) {
			endings = endings[:b.files[i+1].first-b.file.first]
		}
		b.judgeJobs(endings, b.spec.Jobs)
		b.judgeBad(endings, b.spec.Bad)
	}
}

// judgeJobs looks for jobs that were lost, doubled or never asked for. Jobs may
// be nil: then any job may have a record, and none must.
func (b *book) judgeJobs(endings []ending, jobs iter.Seq[string]) {
	slices.SortFunc(endings, func(a, b ending) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at), cmp.Compare(a.run, b.run))
	})
	expected := make([]bool, len(endings)) // at the first ending of each id
	if jobs != nil {
		for id := range jobs {
			i, found := slices.BinarySearchFunc(endings, id, func(e ending, id string) int { return cmp.Compare(e.id, id) })
			if found {
				expected[i] = true
			} else {
				b.reportJob(Lost, id, 0, "job %q has no record", id)
			}
		}
	}
	for first, end := 0, 0; first < len(endings); first = end {
		for end = first; end < len(endings) && endings[end].id == endings[first].id; end++ {
		}
		e := endings[first]
		if jobs != nil && !expected[first] && !e.invalid {
			b.reportJob(Unexpected, e.id, e.at, "job %q is in no job file", e.id)
		}
		b.judgeEndings(endings[first:end])
	}
}

// placeInFile is the end of the id of an invalid record.
var placeInFile = regexp.MustCompile(`(:\d+){1,2}$`)

// judgeBad looks for bad lines of the job files that were lost.
func (b *book) judgeBad(endings []ending, places []string) {
	have := make(map[string]int)
	for _, e := range endings {
		if e.invalid {
			have[placeInFile.FindString(e.id)]++
		}
	}
	for _, place := range places {
		at := placeInFile.FindString(place)
		if have[at]--; have[at] < 0 {
			b.reportJob(Lost, "", 0, "the bad line %s has no record", place)
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
			b.reportJob(Doubled, e.id, e.at, "job %q has two records of one run", e.id)
		case done != nil && done.hash == e.hash:
			b.reportJob(Doubled, e.id, e.at, "job %q was taken up again after it had succeeded", e.id)
		}
		runs[e.run] = true
		if e.succeeded {
			done = &list[i]
		}
	}
}
