//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// world is what the ways need: the product, a server, and a folder to write into.
type world struct {
	dir, program, self string
	url                string // of the server
	stop               io.Closer
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newWorld() *world {
	w := &world{dir: must(os.MkdirTemp("", "bench-")), self: must(os.Executable())}
	w.program = w.path("agentlimit")
	spend(nil, 0, "go", "build", "-o", w.program, "agentlimit")
	server := exec.Command(w.self, "serve")
	w.stop = must(server.StdinPipe())
	said := must(server.StdoutPipe())
	if err := server.Start(); err != nil {
		panic(err)
	}
	w.url = strings.TrimSpace(must(bufio.NewReader(said).ReadString('\n')))
	return w
}

func (w *world) close() {
	w.stop.Close()
	os.RemoveAll(w.dir)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// count returns how many requests came to the server since the last count.
func (w *world) count() float64 {
	resp := must(http.Get(w.url + "/count"))
	defer resp.Body.Close()
	return must(strconv.ParseFloat(string(must(io.ReadAll(resp.Body))), 64))
}

// usage is what a process took, and what it wrote.
type usage struct {
	took time.Duration
	peak float64 // memory, in MB
	said string
}

// spend runs a command to its end, which must be with an exit code.
func spend(stdin io.Reader, code int, name string, args ...string) usage {
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &said, &said
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if cmd.ProcessState.ExitCode() != code {
		panic(fmt.Sprintf("%s: %v: %s", filepath.Base(name), err, &said))
	}
	peak := float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1e6
	if runtime.GOOS != "darwin" { // it counts in KiB
		peak *= 1024
	}
	return usage{took, peak, said.String()}
}

func (w *world) agentlimit(stdin io.Reader, code int, args ...string) usage {
	return spend(stdin, code, w.program, append([]string{"run", "-q", "--overwrite"}, args...)...)
}

// write makes a file of n lines.
func (w *world) write(name string, n int, line func(i int) string) string {
	f := must(os.Create(w.path(name)))
	defer f.Close()
	out := bufio.NewWriter(f)
	defer out.Flush()
	for i := range n {
		fmt.Fprintln(out, line(i))
	}
	return f.Name()
}

// bulk returns jobs as programs make them, as a file or for a pipe: requests of about 220
// bytes, of seven accounts at a hundred hosts.
func (w *world) bulk(from string, n int) (stdin io.Reader, jobs string) {
	jobs = w.write("bulk.jsonl", n, func(i int) string {
		return fmt.Sprintf(`{"id":"job-%d","host":"api%d.example.com","account":"team-%d","http":{"method":"POST","url":"%s/items/%d","headers":{"Authorization":"Bearer ${env:PATH}"},"json":{"prompt":"what is number %d, and why?","n":%d}}}`,
			i, i%100, i%7, w.url, i, i, i)
	})
	if from == "file" {
		return nil, jobs
	}
	return io.MultiReader(must(os.Open(jobs))), "-" // the file alone would be handed on as it is
}

// admissions returns when the first and the last attempt of a results file were admitted.
func admissions(name string) (first, last time.Time) {
	f := must(os.Open(name))
	defer f.Close()
	var record struct {
		Attempts []struct {
			AdmittedAt time.Time `json:"admitted_at"`
		}
	}
	for d := json.NewDecoder(f); d.More(); {
		if err := d.Decode(&record); err != nil {
			panic(err)
		}
		at := record.Attempts[0].AdmittedAt
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

// benchmark runs a benchmark of a package, and returns its figure of a unit.
func benchmark(pkg, name, span, unit string) float64 {
	name = "^Benchmark" + strings.ReplaceAll(name, "/", "$/^") + "$"
	out := spend(nil, 0, "go", "test", "-run", "^$", "-bench", name, "-benchmem", "-benchtime", span, "agentlimit/"+pkg).said
	found := regexp.MustCompile(`(?m)^Benchmark.*\s(\S+) ` + unit + `(\s|$)`).FindStringSubmatch(out)
	return must(strconv.ParseFloat(found[1], 64))
}

// helper is what this program does in processes of their own, so as to share no runtime
// with anything.
func helper(args []string) {
	if args[0] == "serve" {
		serve()
		return
	}
	bare(args[1], must(strconv.ParseInt(args[2], 10, 64)), args[3])
}

// serve counts requests until standard input ends. Each gets a KiB of JSON, those for
// /count how many others came since the last of them.
func serve() {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Printf("http://%s\n", listener.Addr())
	body := []byte(`{"items": ["` + strings.Repeat(`an item", "`, 90) + `the last"]}`)
	var count atomic.Int64
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/count" {
			fmt.Fprint(w, count.Swap(0))
			return
		}
		count.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	io.Copy(io.Discard, os.Stdin)
}

// bare makes n requests, 64 at once, as one would who knows net/http: connections and
// buffers are kept. It has no limits, timeouts, secrets or repeats to think of.
func bare(url string, n int64, name string) {
	f := must(os.Create(name))
	out := bufio.NewWriterSize(f, 1<<16)
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 64, MaxIdleConnsPerHost: 64, DisableCompression: true}}
	var mu sync.Mutex
	var next atomic.Int64
	var all sync.WaitGroup
	queued := time.Now()
	for range 64 {
		all.Go(func() {
			var body, line bytes.Buffer
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			for id := next.Add(1); id <= n; id = next.Add(1) {
				started := time.Now()
				resp := must(client.Get(url))
				body.Reset()
				must(body.ReadFrom(resp.Body))
				resp.Body.Close()
				line.Reset()
				encoder.Encode(struct {
					ID                           int64
					Status                       int
					Headers                      http.Header
					Body                         string
					QueuedAt, StartedAt, EndedAt time.Time
				}{id, resp.StatusCode, resp.Header, body.String(), queued, started, time.Now()})
				mu.Lock()
				out.Write(line.Bytes())
				mu.Unlock()
			}
		})
	}
	all.Wait()
	out.Flush()
	f.Close()
}
