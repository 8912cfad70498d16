package cmd

import (
	"fmt"
	"log/slog"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
)

const (
	// waitingPauses is how many pauses wait to be told of. The run waits for
	// nobody who reads, so if there are more, they are left to the records.
	waitingPauses = 256
	// retoldAfter is how much longer than it was told a pause must be to be told
	// of again: the answers to calls under way together all ask for one.
	retoldAfter = 2 * time.Second
)

// pauses returns what a run tells its pauses to. The second function returns when
// all of them are said.
func (v *voice) pauses() (tell func(runner.Pause), done func()) {
	waiting, gone := make(chan runner.Pause, waitingPauses), make(chan struct{})
	go func() {
		defer close(gone)
		told := make(map[limits.Key]time.Time)
		for p := range waiting {
			switch until, known := told[p.Key]; {
			case p.Over:
				delete(told, p.Key)
				v.note(slog.LevelInfo, "resumed "+p.Key.String(), "key", p.Key.String())
			case !known || p.Until.Sub(until) > retoldAfter:
				told[p.Key] = p.Until
				v.note(slog.LevelInfo, pauseLine(p, time.Now()), "key", p.Key.String(), "until", p.Until, "why", p.Why)
			}
		}
	}()
	tell = func(p runner.Pause) {
		select {
		case waiting <- p:
		default:
		}
	}
	return tell, func() { close(waiting); <-gone }
}

// pauseLine tells who is paused, until when, and why.
func pauseLine(p runner.Pause, now time.Time) string {
	until, format := p.Until.Local(), time.TimeOnly
	if p.Until.Sub(now) > 12*time.Hour {
		format = time.DateTime
	}
	return cut(fmt.Sprintf("paused %s until %s (%s): %s", p.Key, until.Format(format), brief(p.Until.Sub(now)), p.Why), 2*lineWidth)
}
