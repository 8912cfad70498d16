package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"agentlimit/runner/results"
)

// What a page may hold, so that it stays below 5 MB whatever the records say.
const (
	pageSlowest  = 1000      // jobs without trouble
	pageTrouble  = 2_500_000 // bytes of the jobs in trouble
	pageSlow     = 1_000_000 // bytes of the others
	pageName     = 120       // characters of a name
	pageTroubles = 50        // kinds of trouble
	pageKeys     = 50        // of each kind, in the table
	pageHosts    = 30
	spreadBars   = 40
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// page is what the template shows.
type page struct {
	*Report
	Policy      string // what browsers may do: run this script, and nothing else
	Style       template.CSS
	Script      template.JS
	When        string
	Spans       string // of the axis, for the script
	Marks       []mark
	Figures     []figure
	Waits       []bar
	TroubleRows Troubles
	MoreTrouble int64
	KeyRows     []*Key
	MoreKeys    int
	Spreads     []spread
	MoreHosts   int
	Spread      string // what its pictures reach from and to
	Jobs        []jobRow
	MoreJobs    []string
	Words       []results.Status // of the jobs shown
}

// HTML writes the report as one page, which needs nothing from anywhere.
func (r *Report) HTML(w io.Writer) error {
	sum := sha256.Sum256([]byte(pageScript))
	p := &page{
		Report: r, Style: template.CSS(pageStyle), Script: template.JS(pageScript), When: r.when(),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	p.Marks, p.Spans = r.axis.marks()
	for _, l := range r.lines {
		p.Figures = append(p.Figures, r.figure(l))
	}
	p.Waits = barsOf(r.Waited)
	p.TroubleRows = r.Troubles[:min(len(r.Troubles), pageTroubles)]
	p.MoreTrouble = r.untold(p.TroubleRows)
	p.KeyRows, p.MoreKeys = mostUsed(r.Keys, pageKeys)
	p.spreads()
	p.rows()
	words := template.FuncMap{
		"took": took, "moment": moment, "name": name, "ofCap": OfCap, "tightest": (*Key).tightest,
		"waited": func(w results.Waits) string { return Waited(w, took) },
	}
	return template.Must(template.New("page").Funcs(words).Parse(pageText)).Execute(legal{w}, p)
}

func name(s string) string { return clip(s, pageName) }

// legal writes what a page may hold: no characters that control something, which names
// from elsewhere may have.
type legal struct{ io.Writer }

// Write writes blanks for them.
func (l legal) Write(text []byte) (int, error) {
	text = bytes.Clone(text)
	for i, b := range text {
		if b < ' ' && b != '\n' && b != '\t' {
			text[i] = ' '
		}
	}
	return l.Writer.Write(text)
}

// bar is a part of a whole.
type bar struct {
	Name, Value string
	Percent     float64 // of the largest
}

func barsOf(w results.Waits) (list []bar) {
	most := 0.0
	for _, ms := range w.Parts() {
		most = max(most, *ms)
	}
	for cause, ms := range w.Parts() {
		if *ms > 0 {
			list = append(list, bar{results.Causes[cause], took(*ms), math.Round(1000**ms/most) / 10})
		}
	}
	return list
}

// spread is how the times of a host's attempts are spread.
type spread struct {
	*Latency
	Path string
	Text string
}

func (p *page) spreads() {
	hosts := slices.SortedStableFunc(slices.Values(p.Hosts), func(a, b *Latency) int { return cmp.Compare(b.Attempts, a.Attempts) })
	least, most := math.Inf(1), 0.01
	for _, l := range hosts {
		least, most = min(least, max(0.001, float64(l.took[0]))), max(most, l.Max)
	}
	if least >= most {
		least = most / 2
	}
	p.Spread = took(least) + " to " + took(most)
	for _, l := range hosts[:min(len(hosts), pageHosts)] {
		counts := l.spread(spreadBars, least, most)
		text := fmt.Sprintf("Half of %d attempts took at most %s, 99 %% at most %s.", l.Attempts, took(l.P50), took(l.P99))
		p.Spreads = append(p.Spreads, spread{l, steps(counts, float64(slices.Max(counts)), spreadBars), text})
	}
	p.MoreHosts = len(hosts) - len(p.Spreads)
}

// jobRow is a job in the table: one in trouble, or a slow one.
type jobRow struct {
	ID, Host, Account, Start, Took, Reason string
	Status                                 results.Status
	Attempts                               int32
}

// pageOrder is the order of the jobs in the table.
var pageOrder = []results.Status{
	results.Unknown, results.Failed, results.Interrupted, results.Invalid, results.Deferred, results.Succeeded,
}

// rows takes as many jobs as the page has room for: those of unknown fate first,
// then the others in trouble, then the slowest.
func (p *page) rows() {
	all := make([]*job, len(p.jobs))
	for i := range p.jobs {
		all[i] = &p.jobs[i]
	}
	slices.SortFunc(all, func(a, b *job) int {
		return cmp.Or(
			cmp.Compare(slices.Index(pageOrder, a.status.Value()), slices.Index(pageOrder, b.status.Value())),
			cmp.Compare(b.took, a.took), cmp.Compare(a.id, b.id))
	})
	left := make(map[results.Status]int64)
	trouble, slow, slowest := pageTrouble, pageSlow, pageSlowest
	for _, j := range all {
		row := jobRow{ID: name(j.id), Host: name(j.host.Value()), Account: name(j.account.Value()), Status: j.status.Value(), Attempts: j.attempts}
		room := &trouble
		if j.trouble != nil {
			row.Reason = j.trouble.Why()
		} else {
			room = &slow
			slowest--
		}
		size := 200
		for _, s := range []string{row.ID, row.Host, row.Account, row.Reason} {
			size += len(template.HTMLEscapeString(s))
		}
		if *room -= size; *room < 0 || slowest < 0 {
			left[j.status.Value()]++
			continue
		}
		if j.attempts > 0 {
			row.Start, row.Took = clock(results.At(j.started)), took(j.took.Seconds()*1e3)
		}
		if !slices.Contains(p.Words, j.status.Value()) {
			p.Words = append(p.Words, j.status.Value())
		}
		p.Jobs = append(p.Jobs, row)
	}
	p.MoreJobs = Tally(left, results.Statuses[:])
}
