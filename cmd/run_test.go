package cmd_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"agentlimit/cmd"
)

// run runs a command line in this process, with text as its standard input.
func run(ctx context.Context, text string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cmd.Run(ctx, args, strings.NewReader(text), &out, &err)
	return code, out.String(), err.String()
}

const twoJobs = `{"id":"a","host":"h","exec":{"argv":["echo","1"]}}
{"id":"b","host":"h","exec":{"argv":["echo","2"]}}
`

func TestRun(t *testing.T) {
	code, stdout, stderr := run(t.Context(), twoJobs, "run", "-", "-o", "-")
	if code != 0 || strings.Count(stdout, `"status":"succeeded"`) != 2 || !strings.Contains(stderr, "2 succeeded") {
		t.Errorf("run - -o -: code %d, stdout\n%s\nstderr\n%s", code, stdout, stderr)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := run(ctx, twoJobs, "run", "-q", "-", "-o", "-")
	if code != 143 || stdout != "" {
		t.Errorf("run when the context is done: code %d, want 143; stdout\n%s\nstderr\n%s", code, stdout, stderr)
	}
}

func TestUnknownCoordinatorIsRefused(t *testing.T) {
	code, _, stderr := run(t.Context(), `limits: {coordinator: "redys://:hunter2@h"}`, "run", "-", "-o", "-")
	if code != 2 || !strings.Contains(stderr, "coordinator: want local") || strings.Contains(stderr, "hunter2") {
		t.Errorf("run with an unknown coordinator: code %d, stderr\n%s", code, stderr)
	}
}
