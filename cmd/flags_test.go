package cmd

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/runner"
)

// parse runs a command line of run and returns its options.
func parse(t *testing.T, args ...string) (*runOptions, error) {
	t.Helper()
	var got *runOptions
	c := newRunCmd(func(_ context.Context, o *runOptions) error { got = o; return nil })
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(io.Discard)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return got, err
}

func TestRunFlags(t *testing.T) {
	standard := func(change func(*runOptions)) *runOptions {
		o := &runOptions{
			loadOptions: loadOptions{Options: jobspec.Options{Files: []string{"jobs.yaml"}, Vars: map[string]string{}}},
			Config:      runner.Config{Grace: 8 * time.Second, Queue: 10_000, Lost: runner.LostWait}, progress: "auto", logFormat: "text", deferredExit: 75,
		}
		change(o)
		return o
	}
	for _, test := range []struct {
		what, args string
		want       *runOptions
	}{
		{"the defaults", "jobs.yaml", standard(func(*runOptions) {})},
		{"several files, and flags behind them", "a.yaml - -o x", standard(func(o *runOptions) { o.Files, o.output = []string{"a.yaml", "-"}, "x" })},
		{"a var holds whatever is behind the first =", "--var a=b=c --var d= jobs.yaml", standard(func(o *runOptions) { o.Vars = map[string]string{"a": "b=c", "d": ""} })},
		{"durations may have days", "--deadline 1d12h --grace 0s jobs.yaml", standard(func(o *runOptions) { o.Deadline, o.Grace = 36*time.Hour, 0 })},
		{"short names", "-qj4 -o- jobs.yaml", standard(func(o *runOptions) { o.quiet, o.Global, o.output = true, 4, "-" })},
		{"all the rest", "-v --overwrite --queue 7 --format jsonl --progress plain --deferred-exit 0 jobs.yaml", standard(func(o *runOptions) {
			o.verbose, o.overwrite, o.Queue, o.Format, o.progress, o.deferredExit = true, true, 7, "jsonl", "plain", 0
		})},
		{"going on, unknown ones too", "--resume --retry-unknown jobs.yaml", standard(func(o *runOptions) { o.resume, o.RetryUnknown = true, true })},
		{"several choices", "--only id=a* --only host= jobs.yaml", standard(func(o *runOptions) { o.only = []choice{{"id", "a*"}, {"host", ""}} })},
		{"so many failures", "--max-failures 5 jobs.yaml", standard(func(o *runOptions) { o.MaxFailures.Count = 5 })},
		{"a part of them", "--max-failures 2.5% jobs.yaml", standard(func(o *runOptions) { o.MaxFailures.Percent = 2.5 })},
		{"keys that are secrets", "--hide-query code,ticket --hide-query state jobs.yaml", standard(func(o *runOptions) { o.hideQuery = []string{"code", "ticket", "state"} })},
		{"for programs", "--log-format json --summary s.json jobs.yaml", standard(func(o *runOptions) { o.logFormat, o.summary = "json", "s.json" })},
	} {
		t.Run(test.what, func(t *testing.T) {
			got, err := parse(t, strings.Fields(test.args)...)
			if err != nil {
				t.Fatalf("run %s: %v", test.args, err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(meeting{}, runOptions{}, loadOptions{}, choice{})); diff != "" {
				t.Errorf("run %s: options (-want +got):\n%s", test.args, diff)
			}
		})
	}
}

func TestRunFlagsRefused(t *testing.T) {
	for _, test := range []struct{ what, args, want string }{
		{"a bare number is no duration", "--deadline 30 f", "want a duration with a unit"},
		{"no time at all defers everything", "--deadline 0s f", "want a duration above 0s"},
		{"no negative grace", "--grace -1s f", "want a duration with a unit"},
		{"no calls at once runs nothing", "-j 0 f", "want a whole number from 1 to"},
		{"a word is no number", "--queue many f", "want a whole number from 1 to"},
		{"a code is one byte", "--deferred-exit 256 f", "want a whole number from 0 to 255"},
		{"an unknown format", "--format toml f", "want yaml, json, jsonl"},
		{"a var without a name", "--var =x f", "want NAME=VALUE"},
		{"no failure at all would stop nothing", "--max-failures 0 f", "want a whole number from 1, or a percentage"},
		{"nor would no part of them", "--max-failures 0% f", "want a whole number from 1, or a percentage"},
		{"more than all cannot fail", "--max-failures 100.5% f", "want a whole number from 1, or a percentage"},
		{"no number is no percentage", "--max-failures NaN% f", "want a whole number from 1, or a percentage"},
		{"a choice by what is no key", "--only pool=x f", "want id=GLOB, host=GLOB or account=GLOB"},
		{"a choice by nothing", "--only x f", "want id=GLOB, host=GLOB or account=GLOB"},
		{"a pattern that is none", "--only id=[a f", "syntax error in pattern"},
		{"going on and starting anew", "--resume --overwrite f", "contradict"},
		{"going on with a stream", "--resume -o - f", "standard output cannot be gone on with"},
		{"repeating what is not known", "--retry-unknown f", "without --resume"},
		{"a key without a name", "--hide-query a,,b f", "want KEY, or KEY,KEY"},
		{"an unknown log format", "--log-format xml f", "want text, json"},
		{"two wishes that contradict", "-q -v f", "contradict"},
		{"no file", "-q", "no job file is named"},
	} {
		t.Run(test.what, func(t *testing.T) {
			if _, err := parse(t, strings.Fields(test.args)...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run %s: error %v, want one with %q", test.args, err, test.want)
			}
		})
	}
}

func TestSetFromEnv(t *testing.T) {
	c := newRunCmd(func(context.Context, *runOptions) error { return nil })
	flags := c.Flags()
	if err := flags.Parse([]string{"--grace", "1s"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"AGENTLIMIT_GRACE": "2s", "AGENTLIMIT_DEFERRED_EXIT": "3", "AGENTLIMIT_QUIET": "true",
		"AGENTLIMIT_OUTPUT": "", "AGENTLIMIT_QUEUE": "none", "AGENTLIMIT_PROGRESS": "loud",
	}
	err := setFromEnv(flags, func(name string) (string, bool) { v, set := env[name]; return v, set })
	for name, want := range map[string]string{"grace": "1s", "deferred-exit": "3", "quiet": "true", "output": "", "queue": "10000"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{"AGENTLIMIT_QUEUE: want a whole number", "AGENTLIMIT_PROGRESS: want auto, bar, plain, none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("setFromEnv: error %v, want one with %q", err, want)
		}
	}
}
