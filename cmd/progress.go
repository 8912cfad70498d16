package cmd

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/schedule"
)

const (
	redrawEvery = 100 * time.Millisecond
	plainEvery  = 10 * time.Second
)

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
	start := time.Now()
	ticker := time.NewTicker(every)
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-ticker.C:
				sum := stats.Summary()
				draw(sum, totalOf(sum, total), time.Since(start))
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-gone
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
	if w := sum.Longest; !w.Since.IsZero() && time.Since(w.Since) >= time.Second {
		parts = append(parts, "longest wait "+longestWait(w, time.Now()))
		fields = append(fields, "longest_wait_ms", time.Since(w.Since).Milliseconds(), "waits_for", waitsFor(w))
	}
	v.say(slog.LevelInfo, strings.Join(parts, ", "), fields...)
}

// longestWait tells how long a job has waited, and for what.
func longestWait(w runner.Wait, now time.Time) string {
	return fmt.Sprintf("%s: %s", brief(now.Sub(w.Since).Round(time.Second)), waitsFor(w))
}

// waitsFor names the key that a job waits for, and the cause if it is not the
// key's permits.
func waitsFor(w runner.Wait) string {
	cause := causeNames[w.Cause]
	switch {
	case w.Key == (limits.Key{}):
		return cause
	case w.Cause == schedule.Rate, w.Cause == schedule.Pause:
		return fmt.Sprintf("%s (%s)", w.Key, cause)
	}
	return w.Key.String()
}

// progressMode turns auto into what suits standard error. A bar needs a terminal,
// and people.
func (p *program) progressMode(o *runOptions) string {
	switch mode := o.progress; {
	case o.quiet:
		return "none"
	case (mode == "auto" || mode == "bar") && (!isTerminal(p.stderr) || o.logFormat == "json"):
		return "plain"
	case mode == "auto" && (os.Getenv("NO_COLOR") != "" || os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb"):
		return "plain"
	case mode == "auto" && o.output == "-" && isTerminal(p.stdout): // records and bar would mix
		return "plain"
	case mode == "auto":
		return "bar"
	default:
		return mode
	}
}
