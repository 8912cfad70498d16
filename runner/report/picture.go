package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"agentlimit/limits"
)

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
	MostAt, MeanAt string // their heights (of Mean in hundredths), for the script
	Paused         string
	PausedAt       string
	Bucket         *bucket
}

// bucket is the tokens that were taken of a key.
type bucket struct {
	Said, Scale string
	Limit       float64
	Spent       string
	SpentAt     string
}

// height is that of a picture's box, and its width is [bins]: it is stretched to
// what room there is.
const height = 100

// How a key was paused, for the script.
const (
	partly = 1 + iota
	wholly
)

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
	f.Paused, f.PausedAt = r.paused(l.key)
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

// paused draws when a key was paused, and, half as high, when a pair was that it is the
// host or the account of: all else on it went on.
func (r *Report) paused(key limits.Key) (area, at string) {
	values := make([]int64, bins)
	for _, p := range r.Pauses {
		high := int64(wholly)
		if p.Key != key {
			high = partly
		}
		if p.Key == key || p.Key.Kind == limits.Pair && ofPair(p.Key, key) {
			first, last := r.axis.at(p.From.Limits())*bins, r.axis.at(p.Until.Limits())*bins
			for i := int(first); i < bins && float64(i) < last; i++ {
				values[i] = max(values[i], high)
			}
		}
	}
	return steps(values, wholly, bins), fmt.Sprint(values)
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
	path := fmt.Appendf(nil, "M0 %d", height)
	last := int64(0)
	for i, v := range values {
		if v != last {
			path = fmt.Appendf(path, "H%gV%g", round(wide*float64(i)), round(height*(1-float64(v)/top)))
			last = v
		}
	}
	return string(fmt.Appendf(path, "H%dV%dZ", width, height))
}
