package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// What a page may hold, so that it stays below 5 MB whatever the records say.
const (
	pageSlowest  = 1000      // jobs without trouble
	pageRows     = 3_000_000 // bytes of the table of jobs
	pageName     = 120       // characters of a name
	pageTroubles = 50        // kinds of trouble
	pageKeys     = 50        // of each kind, in the table
	pageHosts    = 30
	pagePauses   = 500 // in each picture
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
	TroubleRows []*Trouble
	MoreTrouble int64
	KeyRows     []keyRow
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
	p.MoreTrouble = r.Jobs - r.Statuses[results.Succeeded]
	for _, t := range p.TroubleRows {
		p.MoreTrouble -= t.Jobs
	}
	keys, more := r.mostUsed(pageKeys)
	p.MoreKeys = more
	for _, k := range keys {
		p.KeyRows = append(p.KeyRows, keyRow{
			name(k.Key.String()), k.Started, k.ofCap(), k.Rate, k.tightest(), waitedFor(k.Waited),
			k.Concurrency > 0 && k.Peak > k.Concurrency, k.Tightest != nil && k.Tightest.Spent > k.Tightest.Allowed,
		})
	}
	p.spreads()
	p.rows()
	return template.Must(template.New("page").Funcs(template.FuncMap{"took": took, "moment": moment, "name": name}).Parse(pageText)).Execute(w, p)
}

func name(s string) string { return clip(s, pageName) }

// bar is a part of a whole.
type bar struct {
	Name, Value string
	Percent     float64 // of the largest
}

func barsOf(w results.Waits) (list []bar) {
	most := 0.0
	for _, c := range causes(w) {
		most = max(most, c.MS)
	}
	for _, c := range causes(w) {
		if c.MS > 0 {
			list = append(list, bar{c.Cause, took(c.MS), math.Round(1000*c.MS/most) / 10})
		}
	}
	return list
}

type keyRow struct {
	Key                          string
	Started                      int64
	Peak, Rate, Tightest, Waited string
	OverCap, OverRate            bool
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
	Attempts                               int
}

// rows takes as many jobs as the page has room for: those of unknown fate first,
// then the others in trouble, then the slowest.
func (p *page) rows() {
	rank := func(j *job) int {
		return slices.Index([]results.Status{results.Unknown, results.Failed, results.Interrupted, results.Invalid, results.Deferred, results.Succeeded}, j.status)
	}
	all := make([]*job, len(p.jobs))
	for i := range p.jobs {
		all[i] = &p.jobs[i]
	}
	slices.SortStableFunc(all, func(a, b *job) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.took, a.took)) })
	left := make(map[results.Status]int64)
	room, slow := pageRows, pageSlowest
	for _, j := range all {
		row := jobRow{ID: name(j.id), Host: name(j.host), Account: name(j.account), Status: j.status, Attempts: j.attempts}
		if j.status == results.Succeeded {
			slow--
		}
		if j.trouble != nil {
			row.Reason = j.trouble.Reason
		}
		size := 200
		for _, s := range []string{row.ID, row.Host, row.Account, row.Reason} {
			size += len(template.HTMLEscapeString(s))
		}
		if room -= size; room < 0 || slow < 0 {
			left[j.status]++
			continue
		}
		if j.attempts > 0 {
			row.Start, row.Took = clock(results.At(j.started)), took(j.took.Seconds()*1e3)
		}
		if !slices.Contains(p.Words, j.status) {
			p.Words = append(p.Words, j.status)
		}
		p.Jobs = append(p.Jobs, row)
	}
	for _, s := range statuses {
		if left[s] > 0 {
			p.MoreJobs = append(p.MoreJobs, fmt.Sprintf("%d %s", left[s], s))
		}
	}
}

// mark is a moment below the pictures.
type mark struct {
	X    float64 // per cent
	Text string
	Seam bool // time was left out in front of it
}

// marks are the begin of each stretch and the end of all, and the stretches as the
// script reads them: begin and length in milliseconds.
func (a axis) marks() (list []mark, spans string) {
	for i, s := range a {
		spans += fmt.Sprintf("%d %d ", s.from/1000, (s.to-s.from)/1000)
		x := math.Round(a.at(s.from)*1000) / 10
		if i > 0 && (x-list[len(list)-1].X < 20 || x > 80) {
			list = append(list, mark{X: x, Seam: true}) // no room for words
			continue
		}
		list = append(list, mark{x, s.from.Wall().Format("15:04:05"), i > 0})
	}
	if len(a) > 0 {
		list = append(list, mark{X: 100, Text: a[len(a)-1].to.Wall().Format("15:04:05")})
	}
	return list, spans
}

// figure is what one key did over time.
type figure struct {
	Name           string
	Said           string // in words
	Scale          string // what the top of the picture stands for
	Cap            float64
	Most, Mean     string // areas
	MostAt, MeanAt string // their heights, for the script
	Pauses         []shade
	Bucket         *bucket
}

// bucket is the tokens that were taken of a key.
type bucket struct {
	Said, Scale string
	Limit       float64
	Spent       string
	SpentAt     string
}

type shade struct {
	X, W float64
	Text string
}

// height is that of a picture's box, and its width is [bins]: it is stretched to
// what room there is.
const height = 100

// none stands for the height of a limit that is not known.
const none = -1

func (r *Report) figure(l *line) figure {
	k := r.Keys[slices.IndexFunc(r.Keys, func(k *Key) bool { return k.Key == l.key })]
	f := figure{Name: name(l.key.String()), Cap: none}
	if l.key.Kind == limits.Global {
		f.Name = "all work"
	}
	top := max(1, k.Peak, k.Concurrency)
	sum, of := 0.0, ""
	mean := make([]int64, bins) // in hundredths
	for i, m := range l.mean {
		sum += m
		mean[i] = int64(math.Round(100 * m))
	}
	if k.Concurrency > 0 {
		f.Cap = height * (1 - float64(k.Concurrency)/float64(top))
		of = fmt.Sprintf(" of %d", k.Concurrency)
	}
	f.Said = fmt.Sprintf("At most %d%s under way at once, %.3g on average; %d attempts.", k.Peak, of, sum/bins, k.Started)
	f.Scale = fmt.Sprint(top)
	f.Most, f.MostAt = steps(l.most[:], float64(top), bins), fmt.Sprint(l.most)
	f.Mean, f.MeanAt = steps(mean, 100*float64(top), bins), fmt.Sprint(mean)
	f.Pauses = r.shades(l.key)
	f.Bucket = r.bucket(k, l)
	return f
}

// bucket compares the tokens of each bar with the most that any stretch of its
// length allows. Nil: the key has no bucket, or nothing was taken.
func (r *Report) bucket(k *Key, l *line) *bucket {
	most := slices.Max(l.spent[:])
	rate := k.Limit.Rate
	if most == 0 || r.known && rate.Per == 0 {
		return nil
	}
	width := r.axis.length() / bars
	b := &bucket{Limit: none, Said: fmt.Sprintf("Up to %d tokens in each %s.", most, took(width/1e3))}
	top := float64(most)
	if rate.Per > 0 {
		allowed := float64(k.Burst) + width*float64(rate.Tokens)/float64(rate.Per)
		top = max(top, allowed)
		b.Limit = height * (1 - allowed/top)
		b.Said = fmt.Sprintf("Up to %d tokens in each %s, where %.4g may be (%s, burst %d). Tightest: %s.", most, took(width/1e3), allowed, k.Rate, k.Burst, k.tightest())
	}
	b.Scale = fmt.Sprintf("%.4g", top)
	b.Spent, b.SpentAt = steps(l.spent[:], top, bins), fmt.Sprint(l.spent)
	return b
}

// shades are the pauses of a key; of a host or an account also those of its pairs.
func (r *Report) shades(key limits.Key) (list []shade) {
	for _, p := range r.Pauses {
		if p.Key != key && !(p.Key.Kind == limits.Pair && ofPair(p.Key, key)) {
			continue
		}
		x := r.axis.at(p.From.Limits()) * bins
		w := r.axis.at(p.Until.Limits())*bins - x
		if list = append(list, shade{round(x), max(0.5, round(w)), fmt.Sprintf("%s was paused for %s", name(p.Key.String()), took(p.Until.Sub(p.From.Time).Seconds()*1e3))}); len(list) == pagePauses {
			break
		}
	}
	return list
}

// ofPair reports whether key is the host or the account of a pair.
func ofPair(pair, key limits.Key) bool {
	host, account, _ := strings.Cut(pair.Name, "/")
	return key == limits.Key{Kind: limits.Host, Name: host} || key == limits.Key{Kind: limits.Account, Name: account}
}

func round(x float64) float64 { return math.Round(10*x) / 10 }

// steps draws the area below values, of which top reaches the upper edge.
func steps(values []int64, top float64, width int) string {
	wide := float64(width) / float64(len(values))
	path := []byte(fmt.Sprintf("M0 %d", height))
	last := int64(0)
	for i, v := range values {
		if v != last {
			path = fmt.Appendf(path, "H%gV%g", round(wide*float64(i)), round(height*(1-float64(v)/top)))
			last = v
		}
	}
	return string(fmt.Appendf(path, "H%dV%dZ", width, height))
}
