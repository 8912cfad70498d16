package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentlimit/jobspec"
	"agentlimit/limits"
	"agentlimit/runner"
	"agentlimit/runner/call"
	"agentlimit/runner/results"
)

// writeJobs writes JSON Lines as programs make them: requests of about 220 bytes, of
// seven accounts at a hundred hosts.
func writeJobs(to io.Writer, jobs int) error {
	w := bufio.NewWriter(to)
	for i := range jobs {
		if w.Available() < 512 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, `{"id":"job-%d","account":"team-%d","http":{"method":"POST","url":"https://api%d.example.com/v1/items/%d","headers":{"Authorization":"Bearer ${env:TOKEN}"},"json":{"prompt":"what is number %d, and why?","n":%d,"stream":false}}}`+"\n", i, i%7, i%100, i, i, i)
	}
	return w.Flush()
}

func token(string) (string, bool) { return "a-secret-token", true }

// dropped takes records and forgets them.
type dropped struct{}

func (dropped) Append(...*results.Record) error { return nil }

// BenchmarkRun makes whole runs of files, with calls that do nothing: it reports the
// time by the number of jobs, that until the first call, and, on Linux, the most
// memory that was resident.
func BenchmarkRun(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(jobs), func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "jobs.jsonl")
			f, err := os.Create(name)
			if err == nil {
				err = writeJobs(f, jobs)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				began, peak := time.Now(), resident()
				first := runAll(b, jobspec.Options{Files: []string{name}, Env: token}, jobs)
				b.ReportMetric(first.Sub(began).Seconds(), "s-to-first")
				b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(jobs), "ns/job")
				b.ReportMetric(peak(), "MiB")
			}
		})
	}
}

// runAll runs all jobs of files, and returns when the first call was made.
func runAll(b *testing.B, o jobspec.Options, jobs int) (first time.Time) {
	spec, err := jobspec.Load(o)
	if err != nil {
		b.Fatal(err)
	}
	defer spec.Close()
	table := caps(b, 4, 8)
	started := make(chan time.Time, 1)
	stats := runner.NewStats(table.For)
	err = runner.Run(b.Context(), runner.Config{
		Run: "bench", Source: spec.Source, Limits: table.For, Coordinator: limits.NewLocal(),
		Records: dropped{}, Stats: stats, Global: 16, Queue: 10_000, Grace: time.Second, Kill: context.Background(),
		Caller: caller(func(context.Context, call.Attempt) call.Outcome {
			select {
			case started <- time.Now():
			default:
			}
			return fine
		}),
	})
	if done := stats.Summary().Ended[results.Succeeded]; err != nil || done != int64(jobs) {
		b.Fatalf("Run of %d jobs: %d succeeded, %v", jobs, done, err)
	}
	return <-started
}

// BenchmarkFirstOfPipe takes the time until the first call of a pipe that goes on.
func BenchmarkFirstOfPipe(b *testing.B) {
	for b.Loop() {
		r, w := io.Pipe()
		ended := make(chan struct{})
		go func() {
			_ = writeJobs(w, 1_000_000)
			close(ended)
		}()
		spec, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Stdin: r, Env: token})
		if err != nil {
			b.Fatal(err)
		}
		table := caps(b, 4, 8)
		ctx, stop := context.WithCancel(b.Context())
		err = runner.Run(ctx, runner.Config{
			Run: "bench", Source: spec.Source, Limits: table.For, Coordinator: limits.NewLocal(),
			Records: dropped{}, Stats: runner.NewStats(table.For), Global: 1, Queue: 10_000, Grace: time.Second, Kill: context.Background(),
			Caller: caller(func(context.Context, call.Attempt) call.Outcome { stop(); return fine }),
		})
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
		<-ended
	}
}

// resident begins to look for the most memory that is resident at once, and returns
// what ends that, in MiB; 0 where the system cannot say.
func resident() (peak func() float64) {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // forget the peak so far
	return func() float64 {
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		size, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kib, _ := strconv.ParseFloat(size, 64)
		return kib / 1024
	}
}
