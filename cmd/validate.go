package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner/call"
)

// shownInvalid is how many jobs that cannot be run are told of.
const shownInvalid = 10

// validateOptions are the arguments and flags of validate.
type validateOptions struct {
	loadOptions
	show bool
}

func newValidateCmd(validate func(*validateOptions) error) *cobra.Command {
	o := &validateOptions{}
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say all that is wrong with job files",
		Long: `Read job files as run does, and say all that is wrong with them (exit code 2).
With --show, say how each job is understood: the limits it falls under, what it
costs, its times and retries. Secrets are hidden.`,
		Example: `  agentlimit validate jobs.yaml
  agentlimit validate --show limits.yaml bulk.jsonl | less`,
		RunE: func(*cobra.Command, []string) error { return validate(o) },
	}
	o.onFiles(c)
	c.Flags().BoolVar(&o.show, "show", false, "show each job as it is understood")
	o.addFlags(c.Flags(), "format")
	return c
}

func (p *program) validate(o *validateOptions) error {
	o.InOrder = true
	spec, err := p.load(&o.loadOptions)
	if all, found := errors.AsType[jobspec.Errors](err); found {
		return errors.New(all.All())
	} else if err != nil {
		return err
	}
	defer spec.Close()
	if o.show {
		if err := p.print(fmt.Sprintf("global: %d at once\n\n", cmp.Or(spec.Global, defaultGlobal))); err != nil {
			return err
		}
	}
	var jobs, bad, without int64
	keys := make(map[limits.Key]bool)
	for {
		j, err := spec.Source.Next()
		invalid, isInvalid := errors.AsType[*jobspec.Invalid](err)
		switch {
		case err == io.EOF && bad > 0:
			return fmt.Errorf("%s cannot be run", many(bad, "job"))
		case err == io.EOF:
			p.hintUnused(spec, keys, jobs)
			return p.print("ok: " + many(jobs, "job") + countKeys(keys) + "\n")
		case isInvalid:
			if bad++; bad <= shownInvalid {
				p.voice.fail(invalid)
			}
			continue
		case err != nil:
			return err
		}
		jobs++
		if lost := lostFile(j); lost != "" {
			if without++; without <= shownInvalid {
				p.voice.note(slog.LevelWarn, lost)
			}
		}
		needs := j.Needs(nil, &spec.Limits)
		for _, need := range needs {
			keys[need.Key] = true
		}
		if o.show {
			if err := p.print(showJob(j, needs)); err != nil {
				return err
			}
		}
	}
}

// lostFile says what is wrong with the files that a job reads when it runs, as far as that
// can be seen now: other jobs may make them, or it runs elsewhere.
func lostFile(j *jobspec.Job) string {
	var files [][2]string // what it is for, and its path
	if h := j.HTTP; h != nil {
		files = [][2]string{{"body_file", h.BodyFile}, {"ca_file", h.TLS.CAFile}, {"cert_file", h.TLS.CertFile}, {"key_file", h.TLS.KeyFile}}
	} else {
		files = [][2]string{{"stdin_file", j.Exec.StdinFile}}
	}
	for _, f := range files {
		if f[1] == "" {
			continue
		}
		info, err := os.Stat(f[1])
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("no regular file")
		}
		if err != nil {
			return fmt.Sprintf("%s: %s %q: %v", j.Pos, f[0], hide(f[1], j.Secrets), pathless(err))
		}
	}
	return ""
}

// hintUnused names limits that may be misspelt. A file without jobs has them for others.
func (p *program) hintUnused(spec *jobspec.Spec, keys map[limits.Key]bool, jobs int64) {
	unused := spec.Unused(keys)
	if jobs == 0 || len(unused) == 0 {
		return
	}
	for line := range strings.SplitSeq(unused.Error(), "\n") {
		p.voice.hint(line)
	}
}

// countKeys counts keys by kind, as the rest of a list.
func countKeys(keys map[limits.Key]bool) (list string) {
	var kinds [limits.Pair]int64
	for key := range keys {
		kinds[key.Kind]++
	}
	for kind, n := range kinds {
		if n > 0 {
			list += ", " + many(n, limits.Kind(kind).String())
		}
	}
	return list
}

// targetWidth is how much of a command is shown, in columns.
const targetWidth = 50

// showJob says how a job is understood: what it calls, the limit of each key it
// needs and what it costs there, its times, and when it is tried again.
func showJob(j *jobspec.Job, needs []limits.Need) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  (%s)\n", printable(j.ID), printable(target(j)), j.Pos)
	if len(needs) == 0 {
		fmt.Fprintln(&b, "  no host, account or pool")
	}
	b.WriteString(aligned(func(w io.Writer) {
		for _, need := range needs {
			fmt.Fprintf(w, "  %s\t%s\n", printable(need.Key.String()), showNeed(need))
		}
	}))
	fmt.Fprintf(&b, "  %s\n", strings.Join(showTimes(j), ", "))
	fmt.Fprintf(&b, "  %s\n\n", showRetry(j.Retry))
	return b.String()
}

// showNeed spells a limit as it will be kept, and what the job takes of its bucket.
func showNeed(n limits.Need) string {
	var parts []string
	if most := n.Limit.Concurrency; most > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", most))
	}
	if rate := n.Limit.Rate; rate != (limits.Rate{}) {
		parts = append(parts, rate.String(), fmt.Sprintf("burst %d, cost %d", n.Limit.Burst, n.Cost))
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

func showTimes(j *jobspec.Job) []string {
	parts := []string{"no timeout"}
	if j.Timeout > 0 {
		parts[0] = "timeout " + exact(j.Timeout)
	}
	if j.NotBefore.Set {
		parts = append(parts, "not before "+showWhen(j.NotBefore))
	}
	if j.Deadline.Set {
		parts = append(parts, "deadline "+showWhen(j.Deadline))
	}
	if j.Priority != 0 {
		parts = append(parts, fmt.Sprintf("priority %d", j.Priority))
	}
	return parts
}

func showWhen(w jobspec.When) string {
	if w.At.IsZero() {
		return exact(w.After) + " after the start"
	}
	return w.At.Format(time.RFC3339Nano)
}

func showRetry(r jobspec.Retry) string {
	if r.Attempts == 1 {
		return "1 attempt"
	}
	wait := "no wait on a pause"
	if r.MaxWait > 0 {
		wait = "at most " + exact(r.MaxWait) + " on a pause"
	}
	return fmt.Sprintf("up to %d attempts, backoff %s to %s, %s", r.Attempts, exact(r.Initial), exact(r.Max), wait)
}

// target is what a job calls, its secrets hidden.
func target(j *jobspec.Job) string {
	switch {
	case j.HTTP != nil:
		return j.HTTP.Method + " " + showURL(hide(j.HTTP.URL, j.Secrets))
	case j.Exec.Shell != "":
		text, _, more := strings.Cut(strings.TrimSpace(hide(j.Exec.Shell, j.Secrets)), "\n")
		if more {
			text += " …"
		}
		return "shell " + cut(text, targetWidth)
	}
	return "exec " + cut(hide(strings.Join(j.Exec.Argv, " "), j.Secrets), targetWidth)
}

// showURL leaves out what a URL may hold besides its path.
func showURL(text string) string {
	u, err := url.Parse(text)
	if err != nil { // a secret was where it cannot be hidden
		return "…"
	}
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// hide puts *** where a secret is, typed ones of URLs too.
func hide(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return call.HideURLs(nil)(s)
}
