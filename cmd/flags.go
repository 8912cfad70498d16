package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentlimit/limits"
	"agentlimit/runner"
)

// value is a flag of a type of its own.
type value[T comparable] struct {
	to    *T
	kind  string // as help names it
	parse func(string) (T, error)
	spell func(T) string
}

// Set reads what was typed; on error the value stays as it was.
func (v value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.to = parsed
	}
	return err
}

// Type returns the word for values in help.
func (v value[T]) Type() string { return v.kind }

// String spells the value; help shows it as the default, but for the zero value.
func (v value[T]) String() string {
	var zero T
	if *v.to == zero {
		return ""
	}
	return v.spell(*v.to)
}

// durationFlag reads durations as job files do.
func durationFlag(to *time.Duration, least time.Duration) value[time.Duration] {
	return value[time.Duration]{to, "DURATION", func(s string) (time.Duration, error) {
		d, err := limits.ParseDuration(s)
		if err == nil && d < least {
			err = errors.New("want a duration above 0s")
		}
		return d, err
	}, brief}
}

func countFlag(to *int, least, most int) value[int] {
	return value[int]{to, "N", func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			err = fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return n, err
	}, strconv.Itoa}
}

func wordFlag(to *string, words ...string) value[string] {
	return value[string]{to, "WORD", func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", errors.New("want " + strings.Join(words, ", "))
		}
		return s, nil
	}, func(s string) string { return s }}
}

// maxFailuresFlag reads a number, or a percentage.
func maxFailuresFlag(to *runner.MaxFailures) value[runner.MaxFailures] {
	return value[runner.MaxFailures]{to, "N|N%", func(s string) (m runner.MaxFailures, err error) {
		if digits, share := strings.CutSuffix(s, "%"); share {
			m.Percent, err = strconv.ParseFloat(digits, 64)
			if err == nil && m.Percent > 0 && m.Percent <= 100 {
				return m, nil
			}
		} else if m.Count, err = strconv.ParseInt(s, 10, 64); err == nil && m.Count > 0 {
			return m, nil
		}
		return m, errors.New("want a whole number from 1, or a percentage from above 0% to 100%")
	}, spellMaxFailures}
}

func spellMaxFailures(m runner.MaxFailures) string {
	if m.Percent > 0 {
		return strconv.FormatFloat(m.Percent, 'f', -1, 64) + "%"
	}
	return strconv.FormatInt(m.Count, 10)
}

// variables is a flag that may be given again and again, as NAME=VALUE.
type variables map[string]string

func (v variables) Set(s string) error {
	name, value, found := strings.Cut(s, "=")
	if !found || name == "" {
		return errors.New("want NAME=VALUE")
	}
	v[name] = value
	return nil
}

func (v variables) Type() string   { return "NAME=VALUE" }
func (v variables) String() string { return "" }

// setFromEnv gives each flag that the command line left out the value of its
// variable, such as AGENTLIMIT_GRACE for --grace. An empty variable is none.
func setFromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var bad []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "AGENTLIMIT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, _ := lookup(name)
		if f.Changed || value == "" || f.Name == "help" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			bad = append(bad, fmt.Errorf("the environment variable %s: %q: %w", name, value, err))
		}
		f.Changed = true
	})
	return errors.Join(bad...)
}

// flagError adds to the error of a flag what the user may have meant.
func flagError(c *cobra.Command, err error) error {
	hint := c.CommandPath() + " --help lists the flags"
	if unknown, found := errors.AsType[*pflag.NotExistError](err); found {
		if near := nearestFlag(c, unknown.GetSpecifiedName()); near != "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return &hinted{err, hint}
}

// nearestFlag returns the name of a flag that is spelt like name, or "". Cobra
// knows how to find a command for a misspelt one, so the flags are shown to it as
// commands.
func nearestFlag(c *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := names.SuggestionsFor(name); len(near) > 0 {
		return near[0]
	}
	return ""
}
