//go:build linux

package cmd_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"agentlimit/runner/results"
)

const (
	fiveASecond = `{hosts: {"*": {concurrency: 2, rate: 5/s, burst: 1}}}`
	shortCall   = 300 * time.Millisecond
)

// TestShared is about what processes share, and what they do not.
func TestShared(t *testing.T) {
	atEach(t, map[string]func(*testing.T, *party){
		"limits hold in sum":              limitsHoldInSum,
		"a pause holds all":               pauseHoldsAll,
		"accounts do not slow each other": accountsDoNotSlowEachOther,
		"a dear job is not starved":       dearJobIsNotStarved,
		"but not a results file":          notAResultsFile,
		"numbers must be the same":        numbersMustBeTheSame,
		"numbers may clash late":          numbersMayClashLate,
		"a pause of another's is said":    pauseIsSaid,
	})
}

// limitsHoldInSum has two processes, then eight, call one service, and one more as soon
// as they have ended, which gets no bucket of its own.
func limitsHoldInSum(t *testing.T, p *party) {
	for _, round := range []struct{ processes, jobs int }{{2, 7}, {8, 2}, {1, 2}} {
		var all []*member
		for i := range round.processes {
			name := fmt.Sprintf("%d-of-%d", i, round.processes)
			all = append(all, p.run(name, fiveASecond, p.calls(name, round.jobs, "h", shortCall, "")))
		}
		for _, m := range all {
			m.exits(0)
		}
	}
	p.service.wantKept(t, "h", 2, 5)
	p.audit()
}

// pauseHoldsAll has the service ask one of several processes to wait.
func pauseHoldsAll(t *testing.T, p *party) {
	p.service.refuse["a-1"] = 3
	a := p.run("a", fiveASecond, p.calls("a", 4, "h", shortCall, ", retry: {max_wait: 1s}"))
	b := p.run("b", fiveASecond, p.calls("b", 6, "h", shortCall, ""))
	a.exits(75)
	c := p.run("c", fiveASecond, p.calls("c", 4, "h", shortCall, ""))
	b.exits(0)
	c.exits(0)
	p.service.wantKept(t, "h", 2, 5)
	p.audit()
	var asked, until time.Time
	for r := range p.records() {
		for _, at := range r.Attempts {
			if at.Hint != nil {
				asked, until = at.EndedAt.Time, at.Hint.Until.Time
			}
		}
	}
	if pause := until.Sub(asked); pause < 2900*time.Millisecond || pause > 3400*time.Millisecond {
		t.Errorf("a pause of %v, want 3 s, and up to a tenth more", pause)
	}
	var after []time.Time // admissions
	for r := range p.records() {
		for _, at := range r.Attempts {
			if at.AdmittedAt.After(asked.Add(100 * time.Millisecond)) {
				after = append(after, at.AdmittedAt.Time)
			}
		}
	}
	slices.SortFunc(after, time.Time.Compare)
	for i, at := range after { // the bucket was emptied
		if earliest := until.Add(time.Duration(i+1) * time.Second / 5); at.Before(earliest) {
			t.Errorf("start %d after the pause was %v too early", i, earliest.Sub(at))
		}
	}
}

// pauseIsSaid has a run say why it waits, though the service asked another one.
func pauseIsSaid(t *testing.T, p *party) {
	p.service.refuse["a-0"] = 3
	a := p.run("a", fiveASecond, p.calls("a", 1, "h", shortCall, ""))
	p.service.await(t, "a", 1)
	p.run("b", fiveASecond, p.calls("b", 3, "h", shortCall, "")).exitsSaying(0, "paused")
	a.exitsSaying(0, "paused")
}

// numbersMustBeTheSame starts a run that has other numbers for a key in use.
func numbersMustBeTheSame(t *testing.T, p *party) {
	p.run("first", fiveASecond, p.calls("first", 1, "h", noEnd, ""))
	p.service.await(t, "first", 1)
	p.run("other", oneCall, p.calls("other", 1, "h", 0, "")).exitsSaying(2, "concurrency 1 here, but concurrency 2, rate 5/s, burst 1 at ")
}

// numbersMayClashLate has another process use a key first that a run comes to need: it
// cannot go on, but jobs of it ran.
func numbersMayClashLate(t *testing.T, p *party) {
	late := slices.Concat(p.calls("late", 1, "h", 0, ", host: free"), p.calls("later", 1, "h", 0, ", host: nas, not_before: 3s"))
	m := p.run("late", fiveASecond, late)
	p.run("other", `{hosts: {nas: {concurrency: 1}}}`, p.calls("other", 1, "h", noEnd, ", host: nas"))
	p.service.await(t, "other", 1)
	m.exitsSaying(3, "concurrency 2, rate 5/s, burst 1 here, but concurrency 1 at ")
}

// accountsDoNotSlowEachOther has two processes with an account each, and no limit
// in common.
func accountsDoNotSlowEachOther(t *testing.T, p *party) {
	const limits = `{accounts: {"*": {concurrency: 1, rate: 5/s, burst: 1}}}`
	p.run("first", limits, p.calls("first", 1, "first", 0, "")).exits(0) // so that the buckets are full
	a := p.run("a", limits, p.calls("a", 6, "a", shortCall, ", account: a"))
	b := p.run("b", limits, p.calls("b", 6, "b", shortCall, ", account: b"))
	a.exits(0)
	b.exits(0)
	p.audit()
	for _, by := range []string{"a", "b"} {
		p.service.wantKept(t, by, 1, 0)
		came := p.service.arrivals(by)
		if took := came[len(came)-1].at.Sub(came[0].at); took > 5*shortCall+late {
			t.Errorf("the calls of %s began within %v, want about %v", by, took, 5*shortCall)
		}
	}
}

// dearJobIsNotStarved has one process want five tokens at once, while another
// would use up each that comes.
func dearJobIsNotStarved(t *testing.T, p *party) {
	const limits = `{hosts: {"*": {rate: 10/s, burst: 5}}}`
	cheap := p.run("cheap", limits, p.calls("cheap", 40, "h", time.Millisecond, ""))
	p.service.await(t, "cheap", 8)
	dear := p.run("dear", limits, p.calls("dear", 1, "h", time.Millisecond, ", cost: 5"))
	dear.exits(0)
	if n := len(p.service.arrivals("cheap")); n > 30 {
		t.Errorf("%d of 40 cheap jobs had begun when the dear one had ended", n)
	}
	cheap.exits(0)
	p.audit()
	for r := range p.records() {
		if waited := r.Attempts[0].Waited.Total; r.ID == "dear-0" && waited > float64((500*time.Millisecond+late).Milliseconds()) {
			t.Errorf("the dear job waited for %v ms, want about 500", waited)
		} else if r.Status != results.Succeeded {
			t.Errorf("%s: %s", r.ID, r.Status)
		}
	}
}

// notAResultsFile starts a run while another one has the results file: it ends at once
// and takes nothing. When the first was killed, the next goes on.
func notAResultsFile(t *testing.T, p *party) {
	p.service.hang["jobs-1"] = true
	first := p.run("jobs", fiveASecond, p.calls("jobs", 5, "h", shortCall, ""), "-j", "1")
	p.service.await(t, "jobs", 2)
	second := p.start("second", "run", "--resume", "jobs.yaml")
	second.exitsSaying(4, `"jobs.results.jsonl": in use by another run`)
	p.kill(first)
	p.start("third", "run", "--resume", "jobs.yaml").exits(0)
	if came := p.service.arrivals("second"); len(came) > 0 {
		t.Errorf("the second run made calls: %v", came)
	}
	p.service.wantKept(t, "h", 2, 5)
	p.audit()
	p.accountFor()
}

// TestAlike is about what each process gets of a limit.
func TestAlike(t *testing.T) {
	atEach(t, map[string]func(*testing.T, *party){"sixteen processes": getAlike})
}

// getAlike has sixteen processes want the same two permits.
func getAlike(t *testing.T, p *party) {
	const limits = `{hosts: {"*": {concurrency: 2}}}`
	span := 3 * time.Second
	if long() {
		span = 10 * time.Second
	}
	var all []*member
	for i := range 16 {
		name := fmt.Sprint("p", i)
		all = append(all, p.run(name, limits, p.calls(name, 300, "h", 20*time.Millisecond, "")))
	}
	count := func() (counts []int) {
		for _, m := range all {
			counts = append(counts, len(p.service.arrivals(m.by)))
		}
		return counts
	}
	for _, m := range all {
		p.service.await(t, m.by, 1)
	}
	counts := count()
	<-time.After(span)
	for i, n := range count() {
		counts[i] = n - counts[i]
	}
	for _, m := range all {
		m.Process.Signal(syscall.SIGTERM)
	}
	for _, m := range all {
		m.exits(143)
	}
	p.service.wantKept(t, "h", 2, 0)
	slices.Sort(counts)
	t.Logf("calls by process: %v", counts)
	if (counts[0]+1)*2 < counts[15] { // one may have been about to come
		t.Errorf("calls by process: %v, want the slowest to make at least half as many as the fastest", counts)
	}
}
