package jobspec_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentlimit/jobspec"
)

// writeJobs writes a file of JSON Lines as programs make them, of about 220 bytes a
// job: requests of a few accounts at a hundred hosts.
func writeJobs(t testing.TB, jobs int) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "jobs.jsonl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range jobs {
		fmt.Fprintf(w, `{"id":"job-%d","account":"team-%d","http":{"method":"POST","url":"https://api%d.example.com/v1/items/%d","headers":{"Authorization":"Bearer ${env:TOKEN}"},"json":{"prompt":"what is number %d, and why?","n":%d,"stream":false}}}`+"\n", i, i%7, i%100, i, i, i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// cpu returns the processor time that this process has used.
func cpu(t testing.TB) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// peak begins to measure the most memory that is resident, and returns what ends it;
// 0 where the system cannot say.
func peak() (end func() (bytes int64)) {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return func() int64 {
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		size, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kib, _ := strconv.ParseInt(size, 10, 64)
		return kib << 10
	}
}

// BenchmarkLoad reads files of JSON Lines: until the first job is there, with the
// whole file checked if it is no pipe, and until the last.
func BenchmarkLoad(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(jobs), func(b *testing.B) {
			o := jobspec.Options{Files: []string{writeJobs(b, jobs)}, Env: environment}
			for b.Loop() {
				end, used, began := peak(), cpu(b), time.Now()
				spec, err := jobspec.Load(o)
				if err != nil {
					b.Fatal(err)
				}
				next(b, spec)
				first := time.Now()
				b.ReportMetric(float64(first.Sub(began).Nanoseconds())/float64(jobs), "ns-first/job")
				b.ReportMetric(float64((cpu(b)-used).Nanoseconds())/float64(jobs), "ns-cpu-first/job")
				for range jobs - 1 {
					next(b, spec).Done()
				}
				b.ReportMetric(float64(time.Since(first).Nanoseconds())/float64(jobs), "ns-rest/job")
				b.ReportMetric(float64(end())/(1<<20), "MiB-peak")
				spec.Close()
			}
		})
	}
}

// BenchmarkFirstOfPipe reads the first job of a pipe that goes on.
func BenchmarkFirstOfPipe(b *testing.B) {
	text, err := os.ReadFile(writeJobs(b, 100_000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, w := io.Pipe()
		go w.Write(text)
		spec, err := jobspec.Load(jobspec.Options{Files: []string{"-"}, Stdin: r, Env: environment})
		if err != nil {
			b.Fatal(err)
		}
		next(b, spec)
		r.Close()
	}
}

func next(t testing.TB, s *jobspec.Spec) *jobspec.Job {
	t.Helper()
	j, err := s.Source.Next()
	if err != nil {
		t.Fatalf("Next() = %v", err)
	}
	return j
}
