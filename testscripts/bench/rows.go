//go:build unix

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const inFlight = "64"

// rows are what is measured.
func (w *world) rows() []*row {
	rows := []*row{w.commands("2"), w.commands("8"), w.requests(), w.rate(200, 4), w.rate(2000, 40),
		w.first("file", "≤ 6"), w.first("pipe", "≤ 0.2")}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		rows = append(rows, w.memory("file", n), w.memory("pipe", n))
	}
	rows = append(rows, alone("start-up: `version`, ms", "≤ 8", w.version),
		alone("size of the program, MB", "", func() float64 { return float64(must(os.Stat(w.program)).Size()) / 1e6 }),
		alone("modules in it", "", func() float64 {
			return float64(strings.Count(spend(nil, 0, "go", "version", "-m", w.program).said, "\tdep\t"))
		}))
	for _, b := range [][6]string{
		{"one admission in process, ns", "limits", "StateAdmission", "1s", "ns/op", "≤ 1000"},
		{"one admission in process, allocations", "limits", "StateAdmission", "1s", "allocs/op", "≤ 0"},
		{"one token of a bucket, ns", "limits", "Bucket", "1s", "ns/op", ""},
		{"schedule of 1,000,000 simulated jobs, 10,000 keys, Zipf: µs a job", "runner/schedule", "Schedule/zipf-9000x1000/1000000", "1x", "µs/job", "≤ 30"},
		{"makespan ÷ lower bound, sorted by host, in real time", "runner", "Makespan/sorted", "1x", "makespan/bound", "≤ 1.05"},
		{"makespan ÷ lower bound, shuffled, in real time", "runner", "Makespan/shuffled", "1x", "makespan/bound", "≤ 1.05"},
		{"JSON Lines checked, ns a line", "jobspec", "Lines", "200000x", "ns/check", "≤ 6000"},
		{"record written, ns", "runner/results", "Encode", "1s", "ns/op", ""},
		{"record read, ns", "runner/results", "Decode", "1s", "ns/op", ""},
		{"`plan` of 1,000,000 jobs, µs a job", "runner/plan", "Plan/zipf-9000x1000", "1x", "µs/job", "≤ 60"},
		{"folder: admissions a second, 4 processes", "limits/folder", "Processes/4", "1x", "admissions/s", "≥ 10000"},
		{"folder: slowest ÷ fastest of 16 processes", "limits/folder", "Processes/16", "1x", "fair", "≥ 0.5"},
	} {
		rows = append(rows, alone(b[0], b[5], func() float64 { return benchmark(b[1], b[2], b[3], b[4]) }))
	}
	redis := func(name, program, want string) *way {
		return &way{name: program, tool: "redis-server", want: want, run: func() float64 {
			return benchmark("limits/redis", name, "20000x", "admissions/s")
		}}
	}
	return append(rows, &row{"Redis: whole admissions a second, 64 callers", []*way{
		redis("Admission", "agentlimit", ""), redis("RedisRate", "redis_rate, one bucket", "≥ 1.1")}})
}

// alone is a row without a peer.
func alone(work, want string, run func() float64) *row {
	return &row{work, []*way{{name: "agentlimit", want: want, run: run}}}
}

// commands runs true, workers at once.
func (w *world) commands(workers string) *row {
	const most, few = 4000, 500 // in a round, the latter of what takes long
	peer := func(n int, want, tool string, args ...string) *way {
		return &way{name: strings.Join(append([]string{tool}, args...), " "), tool: tool, want: want, run: func() float64 {
			return float64(n) / spend(strings.NewReader(strings.Repeat("x\n", n)), 0, tool, args...).took.Seconds()
		}}
	}
	jobs := w.write("true.jsonl", most, func(i int) string { return fmt.Sprintf(`{"id":"%d","exec":{"argv":["true"]}}`, i) })
	return &row{"commands a second: `true`, " + workers + " at once", []*way{
		{name: "agentlimit run", run: func() float64 {
			return most / w.agentlimit(nil, 0, jobs, "-j", workers, "-o", w.path("out")).took.Seconds()
		}},
		peer(most, "≥ 1.05", "xargs", "-n1", "-P"+workers, "true"),
		peer(most, "≥ 3", "rush", "-j"+workers, "true"),
		peer(few, "≥ 10", "parallel", "-j"+workers, "true"),
	}}
}

// requests gets a KiB each from a server of ours, whose count is what counts.
func (w *world) requests() *row {
	const n = 32_000
	url, most := w.url+"/x", strconv.Itoa(n)
	jobs := w.write("http.jsonl", n, func(i int) string { return fmt.Sprintf(`{"id":"%d","http":{"url":"%s"}}`, i, url) })
	peer := func(name, want, stdin, tool string, args ...string) *way {
		return &way{name: name, tool: tool, want: want, run: func() float64 {
			w.count()
			took := spend(strings.NewReader(stdin), 0, tool, args...).took
			return w.count() / took.Seconds()
		}}
	}
	return &row{"requests a second, 64 in flight", []*way{
		peer("agentlimit run", "", "", w.program, "run", "-q", "--overwrite", jobs, "-j", inFlight, "-o", w.path("out")),
		peer("a bare loop of net/http", "≥ 0.95", "", w.self, "bare", url, most, w.path("bare")),
		peer("hey", "≥ 1.2", "", "hey", "-n", most, "-c", inFlight, url),
		peer("vegeta", "≥ 1.2", "GET "+url, "vegeta", "attack", "-rate=0", "-max-workers="+inFlight, "-duration=3s", "-output="+w.path("vegeta")),
		peer("curl --parallel", "≥ 1.8", "", "curl", "-s", "--parallel", "--parallel-max", inFlight, "-o", os.DevNull, url+"?[1-"+most+"]"),
		peer("wrk", "", "", "wrk", "-t2", "-c"+inFlight, "-d3s", url),
	}}
}

// rate holds a rate for ten seconds: what was admitted after the bucket's first content,
// over what refilled, by the records. They must pass the audit. The slots are for what the
// first connections take: it is the rate that is to hold the run up.
func (w *world) rate(rate, burst int) *row {
	return alone(fmt.Sprintf("rate held at %d/s: achieved ÷ asked", rate), "≥ 0.999", func() float64 {
		n, out := 10*rate+burst, w.path("out")
		limits := w.write("limits.yaml", 1, func(int) string { return fmt.Sprintf("limits: {hosts: {'*': {rate: %d/s}}}", rate) })
		jobs := w.write("rate.jsonl", n, func(i int) string { return fmt.Sprintf(`{"id":"%d","http":{"url":"%s/x"}}`, i, w.url) })
		const slots = "256"
		w.agentlimit(nil, 0, limits, jobs, "-j", slots, "-o", out)
		spend(nil, 0, w.program, "audit", out, "--jobs", limits, "--jobs", jobs, "-j", slots)
		first, last := admissions(out)
		return float64(n-burst) / last.Sub(first).Seconds() / float64(rate)
	})
}

// first is how long a run takes that ends with its first answer.
func (w *world) first(from, want string) *row {
	return alone("first start of 1000000 lines from a "+from+", s", want, func() float64 {
		fails := w.write("fails.yaml", 1, func(int) string { return "defaults: {expect: {status: [201]}}" })
		stdin, jobs := w.bulk(from, 1_000_000)
		const failed = 1
		return w.agentlimit(stdin, failed, fails, jobs, "--max-failures", "1", "-j", "1", "-o", os.DevNull).took.Seconds()
	})
}

// memory is the most that a whole run has resident, of one round: those of many jobs
// take minutes.
func (w *world) memory(from string, n int) (r *row) {
	r = alone(fmt.Sprintf("peak memory of %d lines from a %s, MB", n, from), "≤ 100", func() float64 {
		if got := r.ways[0].got; got != nil {
			return got[0]
		}
		stdin, jobs := w.bulk(from, n)
		return w.agentlimit(stdin, 0, jobs, "-j", inFlight, "-o", os.DevNull).peak
	})
	return r
}

// version is the median of twenty.
func (w *world) version() float64 {
	took := make([]float64, 20)
	for i := range took {
		took[i] = float64(spend(nil, 0, w.program, "version").took) / float64(time.Millisecond)
	}
	return median(took)
}
