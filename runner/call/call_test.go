package call

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// prompt is how long an attempt that is ended at once may take on a busy machine;
// on a quiet one it takes a few milliseconds.
const prompt = 500 * time.Millisecond

func newClient(t testing.TB, cfg Config) *Client {
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

// httpJob returns a GET of url with the defaults of a job file.
func httpJob(url string, edits ...func(*jobspec.Job)) *jobspec.Job {
	job := &jobspec.Job{
		ID:      "j",
		Timeout: 10 * time.Second,
		Expect:  jobspec.Expect{Status: []jobspec.StatusRange{{Low: 200, High: 299}}},
		Output:  jobspec.Output{Inline: 64 << 10},
		HTTP:    &jobspec.HTTP{Method: "GET", URL: url},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

// execJob returns a command with the defaults of a job file.
func execJob(argv []string, edits ...func(*jobspec.Job)) *jobspec.Job {
	job := &jobspec.Job{
		ID:     "j",
		Expect: jobspec.Expect{ExitCodes: []int{0}},
		Output: jobspec.Output{Inline: 64 << 10},
		Exec:   &jobspec.Exec{Argv: argv, InheritEnv: true},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func timeout(d time.Duration) func(*jobspec.Job) { return func(j *jobspec.Job) { j.Timeout = d } }
func inline(n int64) func(*jobspec.Job)          { return func(j *jobspec.Job) { j.Output.Inline = n } }
func secrets(s ...string) func(*jobspec.Job)     { return func(j *jobspec.Job) { j.Secrets = s } }
func saveTo(path string) func(*jobspec.Job)      { return func(j *jobspec.Job) { j.Output.Save = path } }
func method(m string) func(*jobspec.Job)         { return func(j *jobspec.Job) { j.HTTP.Method = m } }
func header(name, value string) func(*jobspec.Job) {
	return func(j *jobspec.Job) {
		j.HTTP.Headers = append(j.HTTP.Headers, jobspec.Header{Name: name, Value: value})
	}
}

// code returns the kind of out's error, empty for none.
func code(out Outcome) string {
	if out.Error == nil {
		return ""
	}
	return out.Error.Kind
}

// check compares how an attempt ended with what it should have been.
func check(t *testing.T, job *jobspec.Job, out Outcome, kind Kind, wantCode string, sent bool) {
	t.Helper()
	if out.Kind != kind || code(out) != wantCode || out.Sent != sent {
		t.Errorf("Call(%+v %+v) = %s/%q, sent %v (%+v); want %s/%q, sent %v",
			job.HTTP, job.Exec, out.Kind, code(out), out.Sent, out.Error, kind, wantCode, sent)
	}
}

// closedAddress returns an address on which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestCallAlreadyCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	c := newClient(t, Config{})
	for _, job := range []*jobspec.Job{httpJob("http://" + closedAddress(t)), execJob([]string{"true"})} {
		check(t, job, c.Call(ctx, Attempt{Job: job}), Cancelled, "cancelled", false)
	}
}

func TestCallAfterClose(t *testing.T) {
	c := New(Config{})
	c.Close()
	job := execJob([]string{"true"})
	check(t, job, c.Call(t.Context(), Attempt{Job: job}), Cancelled, "cancelled", false)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// allocated returns how many bytes f allocates, in this process.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
