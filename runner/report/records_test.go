package report

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

const (
	began  = limits.Time(1_900_000_000_000_000)
	second = limits.Time(1_000_000)
)

var (
	rare  = limits.Key{Kind: limits.Host, Name: "rare.example.com"}
	teamA = limits.Key{Kind: limits.Account, Name: "team-a"}
)

// limitOf are the limits that records keep.
func limitOf(key limits.Key) limits.Limit {
	switch {
	case key == limits.Key{}:
		return limits.Limit{Concurrency: 16}
	case key == rare:
		return limits.Limit{Concurrency: 4, Rate: limits.Rate{Tokens: 1, Per: 40_000}, Burst: 10}
	case key.Kind == limits.Account:
		return limits.Limit{}
	}
	return limits.Limit{Concurrency: 4}
}

// made are the records of a run of n jobs on four hosts of four slots each, the
// last with a rate, too. Some jobs fail, and some are deferred; one has a pause set.
func made(n int) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		rng := rand.New(rand.NewPCG(1, 2))
		hosts := []string{"api.example.com", "files.example.com", "slow.example.com:8443", rare.Name}
		free := make(map[string]*[4]limits.Time)
		for _, host := range hosts {
			free[host] = &[4]limits.Time{began, began, began, began}
		}
		for i := range n {
			host := hosts[rng.IntN(len(hosts))]
			slot := i % 4
			at := free[host][slot]
			if host == rare.Name {
				at = max(at, began+limits.Time(i/4)*45*second/1000)
			}
			took := time.Duration(20+rng.ExpFloat64()*60) * time.Millisecond
			free[host][slot] = at.Add(took)
			r := attempted(fmt.Sprintf("job-%06d", i), host, at, took)
			r.Attempts[0].Waited = results.Waits{Total: 50, Host: 30, Rate: 15, Account: 5}
			spoil(&r, i)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// attempted is the record of a job that had one attempt.
func attempted(id, host string, at limits.Time, took time.Duration) results.Record {
	a := results.Attempt{
		Host: host, AdmittedAt: results.At(at), StartedAt: results.At(at), EndedAt: results.At(at.Add(took)), Outcome: "ok", Status: 200,
		Charge: map[limits.Key]int64{{Kind: limits.Host, Name: host}: 1, teamA: 1},
	}
	return results.Record{
		V: 1, Run: "first", ID: id, Status: results.Succeeded, Kind: "http", Host: host, Account: teamA.Name, Hash: "h",
		QueuedAt: results.At(began), EndedAt: a.EndedAt, Attempts: []results.Attempt{a}, HTTP: &results.HTTP{Status: 200, Body: strings.Repeat("body ", 20)},
	}
}

// spoil has some jobs end in other ways.
func spoil(r *results.Record, i int) {
	failed := func(status results.Status, kind, message string) {
		r.Status, r.Error = status, &results.Error{Kind: kind, Message: message}
	}
	a := &r.Attempts[0]
	switch {
	case i%97 == 3:
		failed(results.Failed, "status", "status 500, which is not expected")
	case i%211 == 4:
		failed(results.Failed, "timeout", "no answer within 30s")
	case i%307 == 5:
		failed(results.Unknown, "lost", "the connection was lost within the answer")
	case i%1009 == 6:
		until := results.Time{Time: a.EndedAt.Add(2 * time.Second)}
		a.Hint = &results.Hint{Source: "retry-after", Raw: "2", Key: &limits.Key{Kind: limits.Host, Name: r.Host}, Until: until}
		failed(results.Failed, "status", "status 503, which is not expected")
	case i%151 == 7:
		r.Attempts = nil
		r.Status, r.Deferred = results.Deferred, &results.Deferral{
			Reason: "host " + r.Host + ": no token before the deadline", RetryAt: results.Time{Time: r.EndedAt.Add(time.Minute)},
		}
	}
}

// listed are records as a sequence.
func listed(list ...results.Record) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}
