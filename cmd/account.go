package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/results"
)

// account is a run in numbers, as --summary has it. The exit code follows from
// the statuses, which with what was not started make up all the jobs.
type account struct {
	V         int                      `json:"v"`
	Run       string                   `json:"run"`
	ExitCode  int                      `json:"exit_code"`
	Error     string                   `json:"error,omitempty"` // why the run could not begin or go on
	StartedAt results.Time             `json:"started_at"`
	EndedAt   results.Time             `json:"ended_at"`
	Jobs      int64                    `json:"jobs"`
	Earlier   int64                    `json:"earlier"` // of them, done by earlier runs
	Unstarted int64                    `json:"unstarted"`
	Attempts  int64                    `json:"attempts"`
	Peak      int64                    `json:"peak"` // attempts under way at once
	Statuses  map[results.Status]int64 `json:"statuses"`
	Troubles  []troubleAccount         `json:"troubles"`
	Keys      []keyAccount             `json:"keys"`
}

// troubleAccount is why some jobs did not succeed.
type troubleAccount struct {
	Kind    string       `json:"kind"`
	Key     string       `json:"key,omitempty"`
	Jobs    int64        `json:"jobs"`
	First   string       `json:"first"`
	Reason  string       `json:"reason,omitempty"`
	RetryAt results.Time `json:"retry_at,omitzero"`
}

// keyAccount is what one key was used for.
type keyAccount struct {
	Key         limits.Key         `json:"key"`
	Concurrency int64              `json:"concurrency,omitempty"`
	Rate        string             `json:"rate,omitempty"`
	Burst       int64              `json:"burst,omitempty"`
	Started     int64              `json:"started"`
	Peak        int64              `json:"peak"`
	Waited      map[string]float64 `json:"waited_ms"` // by cause
}

// accountOf returns the numbers of a run of total jobs that ends now with err.
func accountOf(name string, sum runner.Summary, total int64, troubles []*trouble, began time.Time, err error) *account {
	a := &account{
		V: 1, Run: name, ExitCode: exitCode(err),
		StartedAt: results.Time{Time: began}, EndedAt: results.Time{Time: began.Add(time.Since(began))},
		Jobs: max(sum.Jobs, total), Earlier: sum.Earlier, Unstarted: unstarted(sum, total),
		Attempts: sum.Attempts, Peak: sum.PeakWay,
		Statuses: make(map[results.Status]int64),
		Troubles: []troubleAccount{}, Keys: []keyAccount{},
	}
	if err = worded(err); err != nil {
		a.Error = err.Error()
	}
	for _, s := range statuses {
		a.Statuses[s] = sum.Ended[s]
	}
	for _, t := range troubles {
		a.Troubles = append(a.Troubles, troubleAccount{t.kind, t.key, t.jobs, t.first, t.reason, results.Time{Time: t.retry}})
	}
	for _, k := range sum.Keys {
		a.Keys = append(a.Keys, accountOfKey(k))
	}
	return a
}

func accountOfKey(k runner.KeyStats) keyAccount {
	a := keyAccount{
		Key: k.Key, Concurrency: k.Limit.Concurrency, Burst: k.Limit.Burst,
		Started: k.Started, Peak: k.Peak, Waited: make(map[string]float64),
	}
	if k.Limit.Rate != (limits.Rate{}) {
		a.Rate = k.Limit.Rate.String()
	}
	for cause, d := range k.Waited {
		name := strings.ReplaceAll(causeNames[cause], " ", "_")
		a.Waited[name] = float64(d.Microseconds()) / 1e3
	}
	return a
}

// checkSummary refuses a file for --summary that cannot be one.
func (o *runOptions) checkSummary() error {
	if o.summary == "" {
		return nil
	}
	err := canWriteWhole(o.summary)
	out, _ := o.results() // what is wrong with it is said later
	switch same := results.SameFile(o.summary, append(inputs(o.files), out)); {
	case same != "" && same == out, sameName(o.summary, out):
		err = errors.New("it is the results file")
	case same != "":
		err = fmt.Errorf("it is the job file %q", same)
	case o.summary == stdout:
		err = errors.New("want a file, such as /dev/stdout")
	}
	if err != nil {
		return &hinted{fmt.Errorf("summary file %q: %w", o.summary, err), "--summary names another file"}
	}
	return nil
}

// sameName reports whether two paths are one, though there may be no file yet.
func sameName(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// write makes the file of --summary.
func (a *account) write(path string) error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = writeWhole(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("summary file %q: %w", path, err)
	}
	return nil
}
