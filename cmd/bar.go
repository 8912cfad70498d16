package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"agentlimit/runner"
)

// barLine draws a bar, how far the run is, and the busiest key, in at most width
// columns, the most important first. Without a total there is no bar.
func barLine(sum runner.Summary, total int64, since time.Duration, width int) string {
	line := strings.Join(progressParts(sum, total, since), ", ")
	if total > 0 {
		line = drawBar(min(ended(sum), total), total, min(max(6, width/2-20), 30)) + line
	}
	return cut(line, max(width, 1))
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
	bar.Set64(done)
	return strings.TrimRight(strings.TrimPrefix(bar.String(), "\r"), " ") + " "
}

// progressParts tells how far a run is, the most important first.
func progressParts(sum runner.Summary, total int64, since time.Duration) []string {
	parts := []string{fmt.Sprintf("%d ended", ended(sum))}
	if total >= 0 {
		parts[0] = fmt.Sprintf("%d/%d", ended(sum), total)
	}
	if len(sum.Keys) > 0 {
		k := busiest(sum.Keys)
		parts = append(parts, ofCap(k.UnderWay, k)+" on "+printable(k.Key.String()))
	}
	parts = append(parts, tally(sum, statuses[1:])...)
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
// the one with most starts. There must be a key.
func busiest(keys []runner.KeyStats) runner.KeyStats {
	taken := func(k runner.KeyStats) float64 {
		if k.Limit.Concurrency == 0 {
			return 0
		}
		return float64(k.UnderWay) / float64(k.Limit.Concurrency)
	}
	return slices.MaxFunc(keys, func(a, b runner.KeyStats) int {
		return cmp.Or(cmp.Compare(taken(a), taken(b)), cmp.Compare(a.Started, b.Started))
	})
}

// ofCap spells a number of attempts on a key: "4/4", or "3" without a cap.
func ofCap(n int64, k runner.KeyStats) string {
	if k.Limit.Concurrency > 0 {
		return fmt.Sprintf("%d/%d", n, k.Limit.Concurrency)
	}
	return fmt.Sprint(n)
}
