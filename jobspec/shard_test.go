package jobspec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

// TestShards gives each job to exactly one shard, and each shard its part of limits
// that nobody else keeps.
func TestShards(t *testing.T) {
	var b strings.Builder
	b.WriteString("limits: {hosts: {h: {concurrency: 7, rate: 6/s, burst: 3}}}\njobs:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "- {id: j%d, host: h, exec: {argv: [x]}}\n", i)
	}
	write(t, map[string]string{"jobs.yaml": b.String()})
	var all []string
	var caps int64
	for i := range int64(3) {
		s, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}, Shard: limits.Shard{Index: i + 1, Of: 3}})
		if err != nil {
			t.Fatal(err)
		}
		jobs := drain(t, s)
		if int64(len(jobs)) != s.Jobs || len(jobs) < 20 {
			t.Errorf("shard %d: %d jobs, said %d", i+1, len(jobs), s.Jobs)
		}
		for _, j := range jobs {
			all = append(all, j.ID)
		}
		limit := s.Limits.For(limits.Key{Kind: limits.Host, Name: "h"})
		caps += limit.Concurrency
		if limit.Rate.String() != "2/s" || limit.Burst != 1 {
			t.Errorf("shard %d: %+v", i+1, limit)
		}
	}
	if slices.Sort(all); len(slices.Compact(all)) != 100 || caps != 7 {
		t.Errorf("%d jobs, %d at once", len(all), caps)
	}
	for text, want := range map[string]string{
		"limits: {hosts: {h: {concurrency: 2}}}\njobs: []\n":                                                               "jobs.yaml:1:21: limits.hosts.h: concurrency: the part of a shard would be 0: share a coordinator instead",
		"limits: {hosts: {h: {rate: 9/s, burst: 8}}}\njobs: [{id: a, host: h, cost: 3, exec: {argv: [x]}}]\n":              "a cost of 3 is above the burst of host/h, 2: it could never start",
		"limits: {hosts: {h: {concurrency: 1}}, coordinator: folder}\njobs: [{id: a, host: h, exec: {argv: [x]}}]\n":       "",
		"limits: {hosts: {h: {concurrency: 1}}, coordinator: \"${var:c}\"}\njobs: [{id: a, host: h, exec: {argv: [x]}}]\n": "the part of a shard would be 0",
	} {
		write(t, map[string]string{"jobs.yaml": text})
		_, err := jobspec.Load(jobspec.Options{Files: []string{"jobs.yaml"}, Shard: limits.Shard{Index: 3, Of: 3}, Vars: map[string]string{"c": "local"}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Load of %q = %v, want %q", text, err, want)
		}
	}
}
