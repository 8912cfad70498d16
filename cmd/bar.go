package cmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"agentlimit/runner"
)

// The inner width of the bar, in columns.
const (
	leastBar = 6
	mostBar  = 30
)

// barLine draws a bar, how far the run is, and the busiest key, in at most width
// columns. What finds no room is left out, the least important first. Without a
// total there is no bar.
func barLine(sum runner.Summary, total int64, since time.Duration, width int) string {
	bar := ""
	if total > 0 {
		bar = drawBar(ended(sum), total, min(max(leastBar, width/2-20), mostBar))
	}
	room := width - columns(bar)
	if room < leastBar {
		bar, room = "", max(width, 1)
	}
	parts := progressParts(sum, total, since)
	for len(parts) > 2 && columns(strings.Join(parts, ", ")) > room {
		parts = parts[:len(parts)-1]
	}
	return bar + cut(strings.Join(parts, ", "), room)
}

// drawBar returns a bar with its percentage in front.
func drawBar(done, total int64, width int) string {
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: " ", BarStart: "|", BarEnd: "|"}),
	)
	bar.RenderBlank()
	bar.Set64(min(done, total))
	return strings.TrimRight(strings.TrimPrefix(bar.String(), "\r"), " ") + " "
}

// progressParts tells how far a run is, the most important first.
func progressParts(sum runner.Summary, total int64, since time.Duration) []string {
	done := fmt.Sprintf("%d ended", ended(sum))
	if total >= 0 {
		done = fmt.Sprintf("%d/%d", ended(sum), total)
	}
	parts := []string{done}
	if k := busiest(sum.Keys); k != nil {
		parts = append(parts, use(k)+" "+printable(k.Key.String()))
	}
	for _, s := range statuses[1:] {
		if n := sum.Ended[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return append(parts, brief(since.Round(time.Second)), fmt.Sprintf("%d under way", sum.UnderWay), fmt.Sprintf("%d waiting", sum.Waiting))
}

func ended(sum runner.Summary) int64 {
	var n int64
	for _, of := range sum.Ended {
		n += of
	}
	return n
}

// busiest returns the key of whose permits the largest part is taken, of several
// the one with most attempts under way, then with most starts; nil if there is none.
func busiest(keys []runner.KeyStats) *runner.KeyStats {
	var best *runner.KeyStats
	for i := range keys {
		k := &keys[i]
		if best == nil || cmp.Or(
			cmp.Compare(share(k), share(best)),
			cmp.Compare(k.UnderWay, best.UnderWay),
			cmp.Compare(k.Started, best.Started)) > 0 {
			best = k
		}
	}
	return best
}

// share is the part of a key's permits that is taken.
func share(k *runner.KeyStats) float64 {
	if k.Limit.Concurrency == 0 {
		return 0
	}
	return float64(k.UnderWay) / float64(k.Limit.Concurrency)
}

// use tells how much of a key is in use: "4/4 on", or "3 on" without a cap.
func use(k *runner.KeyStats) string {
	if k.Limit.Concurrency > 0 {
		return fmt.Sprintf("%d/%d on", k.UnderWay, k.Limit.Concurrency)
	}
	return fmt.Sprintf("%d on", k.UnderWay)
}
