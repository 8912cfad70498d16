package cmd

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"agentlimit/runner/results"
)

func TestExitCode(t *testing.T) {
	ended := func(signal syscall.Signal, deferred int, n map[results.Status]int64) error {
		return &coded{nil, codeOfRun(n, signal, deferred)}
	}
	type counts = map[results.Status]int64
	for _, test := range []struct {
		what string
		err  error
		want int
	}{
		{"all succeeded", nil, 0},
		{"one failed", ended(0, 75, counts{results.Succeeded: 9, results.Failed: 1}), 1},
		{"256 failed", ended(0, 75, counts{results.Failed: 256}), 1},
		{"the fate of one is unknown", ended(0, 75, counts{results.Unknown: 1}), 1},
		{"a line of a pipe was bad", ended(0, 75, counts{results.Invalid: 1}), 1},
		{"some were deferred", ended(0, 75, counts{results.Succeeded: 9, results.Deferred: 1}), 75},
		{"deferred jobs have a code of their own", ended(0, 9, counts{results.Deferred: 1}), 9},
		{"failed beats deferred", ended(0, 75, counts{results.Failed: 1, results.Deferred: 1}), 1},
		{"a signal beats both", ended(syscall.SIGINT, 75, counts{results.Failed: 1, results.Deferred: 1}), 130},
		{"SIGTERM", ended(syscall.SIGTERM, 75, nil), 143},
		{"SIGHUP", ended(syscall.SIGHUP, 75, nil), 129},
		{"it could not go on", fmt.Errorf("run: %w", broken(errors.New("disk full"))), 3},
		{"the file is in use", &hinted{fmt.Errorf("results: %w", results.ErrInUse), "wait"}, 4},
		{"anything else came before the first job", errors.New("bad file"), 2},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%s: exitCode(%v) = %d, want %d", test.what, test.err, got, test.want)
		}
	}
}
