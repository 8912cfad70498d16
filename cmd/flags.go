package cmd

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
)

// value is a flag that reads what was typed in a way of its own. On error it
// stays as it was.
type value struct {
	kind  string   // as help names it
	text  string   // as it was typed; at first the default
	words []string // that it may be; with = at the end, that it may begin with
	read  func(string) error
}

// Set reads what was typed.
func (v *value) Set(s string) error {
	err := v.read(s)
	if err == nil {
		v.text = s
	}
	return err
}

// Type and String are what help shows: the word for values, and the default.
func (v *value) Type() string   { return v.kind }
func (v *value) String() string { return v.text }

// durationFlag reads durations as job files do.
func durationFlag(to *time.Duration, least time.Duration) *value {
	standard := ""
	if *to > 0 {
		standard = exact(*to)
	}
	return &value{kind: "DURATION", text: standard, read: func(s string) error {
		d, err := limits.ParseDuration(s)
		if err != nil {
			return err
		}
		if d < least {
			return errors.New("want a duration above 0s")
		}
		*to = d
		return nil
	}}
}

func countFlag(to *int, least, most int) *value {
	return &value{kind: "N", text: strconv.Itoa(*to), read: func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		*to = n
		return nil
	}}
}

func wordFlag(to *string, words ...string) *value {
	return &value{kind: "WORD", text: *to, words: words, read: func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("want " + strings.Join(words, ", "))
		}
		*to = s
		return nil
	}}
}

// maxFailuresFlag reads a number, or a percentage.
func maxFailuresFlag(to *runner.MaxFailures) *value {
	return &value{kind: "N|N%", read: func(s string) (err error) {
		var m runner.MaxFailures
		if digits, share := strings.CutSuffix(s, "%"); share {
			m.Percent, err = strconv.ParseFloat(digits, 64)
		} else {
			m.Count, err = strconv.ParseInt(s, 10, 64)
		}
		if err != nil || !(m.Percent > 0 && m.Percent <= 100 || m.Count > 0) {
			return errors.New("want a whole number from 1, or a percentage from above 0% to 100%")
		}
		*to = m
		return nil
	}}
}

// variableFlag may be given again and again, as NAME=VALUE.
func variableFlag(to map[string]string) *value {
	return &value{kind: "NAME=VALUE", read: func(s string) error {
		name, value, found := strings.Cut(s, "=")
		if !found || name == "" {
			return errors.New("want NAME=VALUE")
		}
		to[name] = value
		return nil
	}}
}

// keysFlag may be given again and again, with several names and commas between.
func keysFlag(to *[]string) *value {
	return &value{kind: "KEY", read: func(s string) error {
		more := strings.Split(s, ",")
		if slices.Contains(more, "") {
			return errors.New("want KEY, or KEY,KEY")
		}
		*to = append(*to, more...)
		return nil
	}}
}

// choiceFlag may be given again and again: a job must match all.
func choiceFlag(to *[]choice) *value {
	return &value{kind: "FIELD=GLOB", words: []string{"id=", "host=", "account="}, read: func(s string) error {
		field, pattern, found := strings.Cut(s, "=")
		if !found || !slices.Contains([]string{"id", "host", "account"}, field) {
			return errors.New("want id=GLOB, host=GLOB or account=GLOB")
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("the pattern %q: %w", pattern, err)
		}
		*to = append(*to, choice{field, pattern})
		return nil
	}}
}

// choice is what a job is chosen by: one field must match a pattern of
// [path.Match], whose * stands for anything but a slash.
type choice struct{ field, pattern string }

func (c choice) fits(j *jobspec.Job) bool {
	value := map[string]string{"id": j.ID, "host": j.Host, "account": j.Account}[c.field]
	match, _ := path.Match(c.pattern, value) // the flag has tried the pattern
	return match
}

// chosen is a source of the jobs that all choices fit.
type chosen struct {
	jobspec.Source
	by []choice
}

// chosen returns the jobs that there are to run, and how many: -1 if not known.
func (o *runOptions) chosen(spec *jobspec.Spec) (jobspec.Source, int64) {
	if len(o.only) > 0 {
		return &chosen{spec.Source, o.only}, -1
	}
	return spec.Source, spec.Jobs
}

// Next returns the next such job.
func (c *chosen) Next() (*jobspec.Job, error) {
	for {
		j, err := c.Source.Next()
		if err != nil || !slices.ContainsFunc(c.by, func(one choice) bool { return !one.fits(j) }) {
			return j, err
		}
		j.Done()
	}
}

// setFromEnv refuses empty flags, and gives each flag that the command line left out the value of its
// variable, such as AGENTLIMIT_GRACE for --grace. An empty variable is none.
func setFromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var bad []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && isEmpty(f.Value) {
			bad = append(bad, fmt.Errorf("--%s: it is empty: leave it out, or give it a value", f.Name))
		}
		name := "AGENTLIMIT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, _ := lookup(name)
		if f.Changed || value == "" || f.Name == "help" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			bad = append(bad, fmt.Errorf("the environment variable %s: %w", name, err)) // without the value, as anywhere
		}
		f.Changed = true
	})
	return errors.Join(bad...)
}

// isEmpty reports whether a flag was given nothing, as by a variable of a script that
// is not set.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return slices.Contains(list.GetSlice(), "")
	}
	return v.String() == ""
}

// complete has c's flags told in their order, and shells offer their words, and files
// for those that are plain strings: each of them names one.
func complete(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		directive := cobra.ShellCompDirectiveDefault
		var words []string
		if v, ok := f.Value.(*value); ok {
			words, directive = v.words, cobra.ShellCompDirectiveNoFileComp
		}
		if len(words) > 0 && strings.HasSuffix(words[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, directive))
	})
}

// oneFolder has shells offer folders for the only argument of a command.
func oneFolder(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// flagError adds to the error of a flag what the user may have meant. Cobra finds
// a command for a misspelt one, so it is shown the flags as commands.
func flagError(c *cobra.Command, err error) error {
	hint := c.CommandPath() + " --help lists the flags"
	if unknown, found := errors.AsType[*pflag.NotExistError](err); found && unknown.GetSpecifiedShortnames() == "" {
		names := &cobra.Command{SuggestionsMinimumDistance: 2}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		if near := names.SuggestionsFor(unknown.GetSpecifiedName()); len(near) > 0 {
			hint = fmt.Sprintf("did you mean --%s?", near[0])
		}
	}
	if bad, found := errors.AsType[*pflag.InvalidValueError](err); found && bad.GetFlag().Name == "coordinator" {
		err = fmt.Errorf("--coordinator: %w", bad.Unwrap()) // without the value, which may hold a password
	}
	return &hinted{err, hint}
}
