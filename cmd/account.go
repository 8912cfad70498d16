package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Troubles  []*trouble               `json:"troubles"`
	Keys      []keyAccount             `json:"keys"`
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

// account returns the numbers of a run that ends now with err.
func (s *session) account(sum runner.Summary, err error) *account {
	a := &account{
		V: 1, Run: s.Run, ExitCode: exitCode(err),
		StartedAt: results.Time{Time: s.began}, EndedAt: results.Time{Time: s.began.Add(time.Since(s.began))},
		Jobs: max(sum.Jobs, s.total), Earlier: sum.Earlier, Unstarted: unstarted(sum, s.total),
		Attempts: sum.Attempts, Peak: sum.PeakWay,
		Statuses: make(map[results.Status]int64),
		Troubles: append([]*trouble{}, s.watch.troubles...), Keys: []keyAccount{},
	}
	if unsaid := unsaid(err); unsaid != nil {
		a.Error = unsaid.Error()
	}
	for _, s := range statuses {
		a.Statuses[s] = sum.Ended[s]
	}
	for _, k := range sum.Keys {
		of := keyAccount{
			Key: k.Key, Concurrency: k.Limit.Concurrency, Burst: k.Limit.Burst,
			Started: k.Started, Peak: k.Peak, Waited: make(map[string]float64),
		}
		if k.Limit.Rate != (limits.Rate{}) {
			of.Rate = k.Limit.Rate.String()
		}
		for cause, d := range k.Waited {
			of.Waited[strings.ReplaceAll(causeNames[cause], " ", "_")] = float64(d.Microseconds()) / 1e3
		}
		a.Keys = append(a.Keys, of)
	}
	return a
}

// openSummary opens the file of --summary, which is none that the run has already.
func (o *runOptions) openSummary() (*whole, error) {
	out, _ := o.results() // what is wrong with it is said later
	var file *whole
	var err error
	switch same := sameFile(o.summary, o.inputs()...); {
	case sameFile(o.summary, out) != "":
		err = errors.New("it is the results file")
	case same != "":
		err = fmt.Errorf("it is the job file %q", same)
	case o.summary == stdout:
		err = errors.New("want a file, such as /dev/stdout")
	default:
		file, err = create(o.summary)
	}
	if err != nil {
		return nil, &hinted{fmt.Errorf("summary file %q: %w", o.summary, err), "--summary names another file"}
	}
	return file, nil
}

// writeSummary fills the file of --summary at the end of a run with err, which it
// returns.
func (s *session) writeSummary(file *whole, err error) error {
	lines := json.NewEncoder(file)
	lines.SetIndent("", "  ")
	if failed := file.close(lines.Encode(s.account(s.Stats.Summary(), err))); failed != nil {
		return &broken{errors.Join(unsaid(err), fmt.Errorf("summary file %q: %w", s.summary, failed))}
	}
	return err
}
