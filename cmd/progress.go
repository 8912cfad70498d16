package cmd

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
	"agentlimit/runner/schedule"
)

const (
	redrawEvery = 100 * time.Millisecond
	plainEvery  = 10 * time.Second

	// waitingPauses is how many pauses wait to be told of. The run waits for
	// nobody who reads, so if there are more, they are left to the records.
	waitingPauses = 256
	// retoldAfter is how much longer than it was told a pause must be to be told
	// of again: the answers to calls under way together all ask for one.
	retoldAfter = 2 * time.Second
)

// progressMode turns auto into what suits standard error. A bar needs a terminal,
// and people.
func (p *program) progressMode(o *runOptions) string {
	unfit := os.Getenv("NO_COLOR") != "" || os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb" ||
		o.output == stdout // what reads the records may write to the same terminal
	switch {
	case o.quiet || o.progress == "none":
		return "none"
	case o.progress == "plain" || o.logFormat == "json" || !term.IsTerminal(handle(p.stderr)) || o.progress == "auto" && unfit:
		return "plain"
	}
	return "bar"
}

// progress begins to show what a run does, in a mode of --progress but auto. The
// result ends that, and returns when nothing more is shown.
func (v *voice) progress(mode string, stats *runner.Stats, total int64) (hide func()) {
	draw, every := v.drawBar, redrawEvery
	switch mode {
	case "none":
		return func() {}
	case "plain":
		draw, every = v.drawLine, plainEvery
	}
	start, ticks, done := time.Now(), time.Tick(every), make(chan struct{})
	var drawer sync.WaitGroup
	drawer.Go(func() {
		for {
			select {
			case <-ticks:
				sum := stats.Summary()
				draw(sum, totalOf(sum, total), time.Since(start))
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		drawer.Wait()
		v.set("")
	}
}

// totalOf returns how many jobs a run has: -1 if that is not known, as with a pipe
// or a choice of jobs before all have been read.
func totalOf(sum runner.Summary, total int64) int64 {
	if total < 0 && sum.AllRead {
		return sum.Jobs
	}
	return total
}

func (v *voice) drawBar(sum runner.Summary, total int64, since time.Duration) {
	// A full last column would move the cursor to the next line.
	v.set(barLine(sum, total, since, v.width()-1))
}

func (v *voice) drawLine(sum runner.Summary, total int64, since time.Duration) {
	parts := progressParts(sum, total, since)
	fields := []any{"ended", ended(sum), "total", total, "under_way", sum.UnderWay, "waiting", sum.Waiting}
	if waits := time.Since(sum.Longest.Since.Wall()); sum.Longest.Since > 0 && waits >= time.Second {
		parts = append(parts, fmt.Sprintf("longest wait %s: %s", brief(waits.Round(time.Second)), waitsFor(sum.Longest)))
		fields = append(fields, "longest_wait_ms", waits.Milliseconds(), "waits_for", waitsFor(sum.Longest))
	}
	v.say(slog.LevelInfo, strings.Join(parts, ", "), fields...)
}

// waitsFor names the key that a job waits for, and the cause if it is not the
// key's permits.
func waitsFor(w schedule.Wait) string {
	switch cause := results.Causes[w.Cause]; {
	case w.Key == (limits.Key{}):
		return cause
	case w.Cause == schedule.Rate, w.Cause == schedule.Pause:
		return fmt.Sprintf("%s (%s)", w.Key, cause)
	}
	return w.Key.String()
}

// pauses returns what a run tells its pauses to. The second function returns when
// all of them are said.
func (v *voice) pauses() (tell func(runner.Pause), done func()) {
	waiting := make(chan runner.Pause, waitingPauses)
	var teller sync.WaitGroup
	teller.Go(func() {
		told := make(map[limits.Key]time.Time)
		for p := range waiting {
			switch until, known := told[p.Key]; {
			case p.Over:
				delete(told, p.Key)
				v.note(slog.LevelInfo, "resumed "+p.Key.String(), "key", p.Key.String())
			case !known || p.Until.Sub(until) > retoldAfter:
				told[p.Key] = p.Until
				v.note(slog.LevelInfo, pauseLine(p), "key", p.Key.String(), "until", p.Until, "why", p.Why)
			}
		}
	})
	tell = func(p runner.Pause) {
		select {
		case waiting <- p:
		default:
		}
	}
	return tell, func() { close(waiting); teller.Wait() }
}

// pauseLine tells who is paused, until when, and why.
func pauseLine(p runner.Pause) string {
	format := time.TimeOnly
	if p.Left > 12*time.Hour {
		format = time.DateTime
	}
	return cut(fmt.Sprintf("paused %s until %s (%s): %s", p.Key, p.Until.Local().Format(format), brief(p.Left), p.Why), 2*lineWidth)
}

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
		parts = append(parts, report.OfCap(k.UnderWay, k.Limit.Concurrency)+" on "+printable(k.Key.String()))
	}
	parts = append(parts, report.Tally(sum.Ended, results.Statuses[1:])...)
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
