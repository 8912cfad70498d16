package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentlimit/limits"
	"agentlimit/limits/folder"
	"agentlimit/limits/redis"
	"agentlimit/runner/report"
	"agentlimit/runner/results"
)

// statusOptions are the flags of status.
type statusOptions struct {
	loadOptions
	format string
	watch  bool
}

func newStatusCmd(status func(context.Context, *statusOptions) error) *cobra.Command {
	o := &statusOptions{format: "table"}
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what processes hold at a coordinator",
		Long: `Say what is under way and what waits at a coordinator that processes share, with
buckets and pauses, for each key that is in use, waited for, paused or not full.`,
		Example: `  agentlimit status --coordinator folder
  agentlimit status --coordinator redis://localhost --format json | jq .keys`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return status(c.Context(), o) },
	}
	f := c.Flags()
	o.addCoordinatorFlag(f)
	f.Var(wordFlag(&o.format, "table", "json"), "format", "table or json")
	f.BoolVar(&o.watch, "watch", false, "say it again every second, until Ctrl-C")
	return c
}

// status prints what there is, once or again and again.
func (p *program) status(ctx context.Context, o *statusOptions) error {
	if o.Coordinator == "" || o.Coordinator == "local" {
		return &hinted{errors.New("no shared coordinator is named"), "--coordinator folder, or redis://HOST"}
	}
	m, err := parseMeeting(o.Coordinator)
	if err != nil {
		return err
	}
	soft, _, _, release := p.takeSignals(ctx, func() {})
	defer release()
	for {
		keys, err := look(soft, m)
		switch {
		case soft.Err() != nil:
			return nil
		case err != nil:
			return broken(err)
		}
		if err := p.showStatus(o, keys, time.Now()); err != nil || !o.watch {
			return err
		}
		select {
		case <-soft.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// look returns what a shared coordinator knows.
func look(ctx context.Context, m meeting) ([]limits.KeyStatus, error) {
	if m.redis != "" {
		return redis.Look(ctx, m.redis)
	}
	return folder.Look(m.folder)
}

func (p *program) showStatus(o *statusOptions, keys []limits.KeyStatus, at time.Time) error {
	if o.format == "json" {
		line, err := json.Marshal(statusDoc{results.Time{Time: at}, statusRows(keys)})
		if err != nil {
			return err
		}
		return p.print(string(line) + "\n")
	}
	text := statusTable(keys)
	if o.watch {
		text = at.Format(time.TimeOnly) + "\n" + text + "\n"
	}
	return p.print(text)
}

// statusDoc is what --format json prints.
type statusDoc struct {
	At   results.Time `json:"at"`
	Keys []statusRow  `json:"keys"`
}

type statusRow struct {
	Key limits.Key `json:"key"`
	results.Bounds
	InUse       int64          `json:"in_use"`
	Waiting     int64          `json:"waiting"`
	Tokens      *float64       `json:"tokens,omitempty"`
	PausedUntil results.Time   `json:"paused_until,omitzero"`
	Members     []statusMember `json:"members"`
}

type statusMember struct {
	Member  string `json:"member"`
	InUse   int64  `json:"in_use"`
	Waiting int64  `json:"waiting"`
}

func statusRows(keys []limits.KeyStatus) []statusRow {
	rows := []statusRow{}
	for _, k := range keys {
		row := statusRow{Key: k.Key, Bounds: results.BoundsOf(k.Limit), InUse: k.InUse, PausedUntil: results.At(k.Pause), Members: []statusMember{}}
		if k.Limit.Rate.Per > 0 {
			row.Tokens = new(float64(k.Bucket.Level) / float64(k.Limit.Rate.Per))
		}
		for _, m := range k.Members {
			row.Waiting += m.Waiting
			row.Members = append(row.Members, statusMember(m))
		}
		rows = append(rows, row)
	}
	return rows
}

// statusTable has a line for each key.
func statusTable(keys []limits.KeyStatus) string {
	if len(keys) == 0 {
		return "nothing is under way, waits or is paused, and every bucket is full\n"
	}
	return aligned(func(w io.Writer) {
		fmt.Fprintln(w, "key\tin use\twaiting\ttokens\tpaused until\tby")
		for _, r := range statusRows(keys) {
			tokens, paused := "-", "-"
			if r.Tokens != nil {
				tokens = fmt.Sprintf("%.1f/%d, %s", *r.Tokens, r.Burst, r.Rate)
			}
			if !r.PausedUntil.IsZero() {
				paused = r.PausedUntil.Local().Format(time.TimeOnly)
			}
			var by []string
			for _, m := range r.Members {
				by = append(by, m.Member)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", printable(r.Key.String()), report.OfCap(r.InUse, r.Concurrency), r.Waiting, tokens, paused, cut(strings.Join(by, " "), targetWidth))
		}
	})
}
