package cmd

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"agentlimit/jobspec"
)

// choice is what jobs are chosen by: one field must match a pattern of
// [path.Match], whose * stands for anything but a slash.
type choice struct{ field, pattern string }

// choices is a flag that may be given again and again: a job must match all.
type choices []choice

// Set adds one choice, as FIELD=GLOB.
func (c *choices) Set(s string) error {
	field, pattern, _ := strings.Cut(s, "=")
	if (choice{field: field}).of(&jobspec.Job{}) == nil || !strings.Contains(s, "=") {
		return errors.New("want id=GLOB, host=GLOB or account=GLOB")
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("the pattern %q: %w", pattern, err)
	}
	*c = append(*c, choice{field, pattern})
	return nil
}

// Type returns the word for choices in help.
func (c *choices) Type() string { return "FIELD=GLOB" }

// String returns nothing: the default is every job.
func (c *choices) String() string { return "" }

// of returns the job's field, nil if there is none of that name.
func (c choice) of(j *jobspec.Job) *string {
	switch c.field {
	case "id":
		return &j.ID
	case "host":
		return &j.Host
	case "account":
		return &j.Account
	}
	return nil
}

// chosen is a source of the jobs that match.
type chosen struct {
	jobspec.Source
	by choices
}

// Next returns the next job that matches all choices.
func (c *chosen) Next() (*jobspec.Job, error) {
	for {
		j, err := c.Source.Next()
		if err != nil || c.by.match(j) {
			return j, err
		}
	}
}

func (c choices) match(j *jobspec.Job) bool {
	for _, one := range c {
		if match, _ := path.Match(one.pattern, *one.of(j)); !match {
			return false
		}
	}
	return true
}
