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
)

// duration is a flag that is read as durations in job files are.
type duration struct {
	to    *time.Duration
	least time.Duration
}

func (d duration) Set(s string) error {
	v, err := limits.ParseDuration(s)
	if err == nil && v < d.least {
		err = errors.New("want a duration above 0s")
	}
	if err != nil {
		return err
	}
	*d.to = v
	return nil
}

func (d duration) Type() string { return "DURATION" }

func (d duration) String() string {
	if *d.to == 0 {
		return "" // no default to show
	}
	return brief(*d.to)
}

// count is a flag that is a whole number of a range.
type count struct {
	to         *int
	least, max int
}

func (c count) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || v < c.least || v > c.max {
		return fmt.Errorf("want a whole number from %d to %d", c.least, c.max)
	}
	*c.to = v
	return nil
}

func (c count) Type() string { return "N" }

func (c count) String() string {
	if *c.to == 0 {
		return ""
	}
	return strconv.Itoa(*c.to)
}

// choice is a flag that is one of some words.
type choice struct {
	to    *string
	words []string
}

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return errors.New("want " + strings.Join(c.words, ", "))
	}
	*c.to = s
	return nil
}

func (c choice) Type() string   { return "WORD" }
func (c choice) String() string { return *c.to }

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
