package report

import (
	"cmp"
	"maps"
	"slices"

	"agentlimit/limits"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

const (
	bins  = 600 // of what is under way, over the whole time
	bars  = 120 // of tokens
	drawn = 10  // keys of each kind, the most used ones
)

// span is a stretch of time.
type span struct{ from, to limits.Time }

// hold widens the span so that it holds t, if that is a moment.
func (s *span) hold(t limits.Time) {
	if t > 0 {
		s.from, s.to = min(s.from, t), max(s.to, t)
	}
}

// length is in microseconds.
func (s span) length() float64 { return float64(s.to - s.from) }

// axis is the time that is drawn: spans in their order, without what lies between
// them, so that a run and its resumption a day later both can be seen.
type axis []span

// join puts spans in order, and together as far as the gap between two is no longer
// than what may be behind the former.
func join(spans []span, may func(span) float64) (joined []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && (span{joined[last].to, s.from}).length() <= may(joined[last]) {
			joined[last].to = max(joined[last].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// length is in microseconds, and above zero.
func (a axis) length() float64 {
	sum := 0.0
	for _, s := range a {
		sum += s.length()
	}
	return max(1, sum)
}

// at returns where a moment lies, from 0 to 1.
func (a axis) at(t limits.Time) float64 {
	before := 0.0
	for _, s := range a {
		before += span{s.from, min(max(t, s.from), s.to)}.length()
	}
	return before / a.length()
}

// line is what happened on one key, over time.
type line struct {
	key   limits.Key
	most  [bins]int64   // under way at once
	mean  [bins]float64 // under way
	spent [bars]int64   // tokens

	last     float64 // bins up to now
	underWay int64
}

// layTimes is called once all records are read: only now is it known which time
// there is to draw.
func (g *gatherer) layTimes() {
	var runs []span
	for _, s := range g.runs {
		if s.to > 0 {
			runs = append(runs, *s)
		}
	}
	g.axis = join(runs, span.length) // no gap is longer than all before it
	if len(g.axis) > 0 {
		g.StartedAt, g.EndedAt = results.At(g.axis[0].from), results.At(g.axis[len(g.axis)-1].to)
		g.Took = g.axis.length() / 1e3
	}
	if g.Attempts > 0 {
		g.lines = append(g.lines, new(line)) // of the global cap
	}
	keys, _ := mostUsed(slices.Collect(maps.Values(g.keys)), drawn)
	for _, k := range keys {
		g.lines = append(g.lines, &line{key: k.Key})
	}
	slices.SortFunc(g.lines, func(a, b *line) int { return a.key.Compare(b.key) })
	for _, key := range slices.SortedFunc(maps.Keys(g.pauses), limits.Key.Compare) {
		for _, p := range join(g.pauses[key], func(span) float64 { return 0 }) {
			g.Pauses = append(g.Pauses, Pause{key, results.At(p.from), results.At(p.to)})
		}
	}
}

// watch draws one step of the sweep over a key.
func (g *gatherer) watch(k *audit.KeyReport, at limits.Time, underWay, spent int64) {
	if k != g.swept {
		g.swept, g.place = k, slices.IndexFunc(g.lines, func(l *line) bool { return l.key == k.Key })
	}
	if g.place < 0 {
		return
	}
	l := g.lines[g.place]
	now := g.axis.at(at) * bins
	for i := int(l.last); i < bins && float64(i) < now && l.underWay > 0; i++ {
		l.mean[i] += float64(l.underWay) * (min(now, float64(i+1)) - max(l.last, float64(i)))
		l.most[i] = max(l.most[i], l.underWay)
	}
	l.last, l.underWay = now, underWay
	bin := min(int(now), bins-1)
	l.most[bin] = max(l.most[bin], underWay)
	l.spent[bin*bars/bins] += spent
}
