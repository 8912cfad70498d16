package audit

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

const (
	start  = limits.Time(1_700_000_000_000_000)
	second = limits.Time(1_000_000)
)

var (
	api   = limits.Key{Kind: limits.Host, Name: "api"}
	slow  = limits.Key{Kind: limits.Host, Name: "slow"}
	teamA = limits.Key{Kind: limits.Account, Name: "a"}
	teamB = limits.Key{Kind: limits.Account, Name: "b"}
	llm   = limits.Key{Kind: limits.Pool, Name: "llm"}

	table = map[limits.Key]limits.Limit{
		{}:    {Concurrency: 5},
		api:   {Concurrency: 3, Rate: limits.Rate{Tokens: 1, Per: 50_000}, Burst: 4},
		slow:  {Concurrency: 1},
		teamA: {Concurrency: 2, Rate: limits.Rate{Tokens: 3, Per: 1_000_000}, Burst: 10},
		teamB: {Concurrency: 2},
		llm:   {Rate: limits.Rate{Tokens: 90, Per: 1_000_000}, Burst: 200},
	}
)

func limitOf(key limits.Key) limits.Limit { return table[key] }

func each(records []results.Record) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func ids(records []results.Record) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range records {
			if !yield(r.ID) {
				return
			}
		}
	}
}

// simulate makes the records of a run that starts each job, in order, as soon as
// its keys allow it.
func simulate(rng *rand.Rand, jobs int) []results.Record {
	buckets := make(map[limits.Key]*limits.Bucket)
	busy := make(map[limits.Key][]limits.Time) // when those under way end
	free := func(key limits.Key, now limits.Time) limits.Time {
		busy[key] = slices.DeleteFunc(busy[key], func(end limits.Time) bool { return end <= now })
		slices.Sort(busy[key])
		if over := len(busy[key]) - int(table[key].Concurrency); table[key].Concurrency > 0 && over >= 0 {
			return busy[key][over]
		}
		return now
	}
	now := start
	var records []results.Record
	for i := range jobs {
		keys := map[limits.Key]int64{[]limits.Key{api, slow}[rng.IntN(2)]: 1, []limits.Key{teamA, teamB}[rng.IntN(2)]: 1}
		if rng.IntN(2) == 0 {
			keys[llm] = rng.Int64N(200)
		}
		for at := now; ; now = at {
			for key, cost := range keys {
				at = max(at, free(key, now), free(limits.Key{}, now))
				if l := table[key]; l.Rate.Per > 0 {
					if buckets[key] == nil {
						buckets[key] = new(limits.Full(l, start))
					}
					buckets[key].Refill(l, now)
					at = max(at, buckets[key].Ready(l, cost))
				}
			}
			if at == now {
				break
			}
		}
		end := now + 1 + limits.Time(rng.Int64N(int64(second/2)))
		busy[limits.Key{}] = append(busy[limits.Key{}], end)
		r := results.Record{Run: "r", ID: fmt.Sprint("job-", i), Status: results.Succeeded, Hash: "h", Deadline: results.At(now), EndedAt: results.At(end)}
		for key, cost := range keys {
			busy[key] = append(busy[key], end)
			switch key.Kind {
			case limits.Host:
				r.Host = key.Name
			case limits.Account:
				r.Account = key.Name
			default:
				r.Pools = []string{key.Name}
			}
			if l := table[key]; l.Rate.Per > 0 && !buckets[key].Take(l, cost) {
				panic("the simulation took what was not there")
			}
		}
		r.Attempts = []results.Attempt{{Host: r.Host, AdmittedAt: results.At(now), StartedAt: results.At(now), EndedAt: results.At(end), Charge: keys}}
		records = append(records, r)
	}
	return records
}

func TestCleanRunsPass(t *testing.T) {
	for seed := range uint64(50) {
		records := simulate(rand.New(rand.NewPCG(seed, 0)), 200)
		got := Check(each(records), Spec{Limits: limitOf, Jobs: ids(records)})
		if len(got.Violations) > 0 {
			t.Fatalf("seed %d: Check of a clean run = %v", seed, got.Violations)
		}
		if got.Records != 200 || got.Attempts != 200 {
			t.Errorf("seed %d: Check counts %d records and %d attempts, want 200 and 200", seed, got.Records, got.Attempts)
		}
	}
}

// One token more in the tightest window of each bucket, and the run is caught.
func TestOneTokenTooManyIsCaught(t *testing.T) {
	for seed := range uint64(50) {
		records := simulate(rand.New(rand.NewPCG(seed, 1)), 200)
		clean := Check(each(records), Spec{Limits: limitOf})
		for _, k := range clean.Keys {
			if k.Limit.Rate.Per == 0 {
				continue
			}
			last := slices.IndexFunc(records, func(r results.Record) bool {
				return r.Attempts[0].Charge[k.Key] > 0 && r.Attempts[0].AdmittedAt.Limits() == k.Tightest.To.Limits()
			})
			charge := records[last].Attempts[0].Charge
			more := k.Tightest.Allowed - k.Tightest.Spent + 1
			charge[k.Key] += more
			got := Check(each(records), Spec{Limits: limitOf})
			charge[k.Key] -= more
			if !slices.ContainsFunc(got.Violations, func(v Violation) bool { return v.Kind == Rate && v.Key == k.Key && v.At == k.Tightest.To }) {
				t.Errorf("seed %d: %d tokens more for %v in its tightest window %+v: Check = %v", seed, more, k.Key, k.Tightest, got.Violations)
			}
			charge[k.Key] += more - 1
			if got := Check(each(records[:last+1]), Spec{Limits: limitOf}); len(got.Violations) > 0 {
				t.Errorf("seed %d: the %d tokens that were left for %v: Check = %v", seed, more-1, k.Key, got.Violations)
			}
			charge[k.Key] -= more - 1
		}
	}
}

// try is a record of one attempt on host api, without an account.
func try(id string, from, to limits.Time, change ...func(*results.Record)) results.Record {
	r := results.Record{
		Run: "r", ID: id, Status: results.Succeeded, Hash: "h", Host: "api", EndedAt: results.At(start + to),
		Attempts: []results.Attempt{{
			Host: "api", AdmittedAt: results.At(start + from), StartedAt: results.At(start + from), EndedAt: results.At(start + to),
			Charge: map[limits.Key]int64{api: 1},
		}},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func account(name string) func(*results.Record) {
	return func(r *results.Record) {
		r.Account = name
		r.Attempts[0].Charge[limits.Key{Kind: limits.Account, Name: name}] = 1
	}
}

func cost(n int64) func(*results.Record) {
	return func(r *results.Record) { r.Attempts[0].Charge[api] = n }
}

func deadline(at limits.Time) func(*results.Record) {
	return func(r *results.Record) { r.Deadline = results.At(start + at) }
}

func told(key limits.Key, until limits.Time) func(*results.Record) {
	return func(r *results.Record) {
		r.Attempts[0].Hint = &results.Hint{Key: &key, Until: results.At(start + until)}
	}
}

func record(run, hash string, status results.Status) func(*results.Record) {
	return func(r *results.Record) { r.Run, r.Hash, r.Status = run, hash, status }
}

// termsOf knows of some jobs.
func termsOf(id, hash string) *Terms {
	return map[string]*Terms{
		"dear h":  {Needs: []limits.Need{{Key: api, Cost: 2}}},
		"team h":  {Needs: []limits.Need{{Key: api, Cost: 1}, {Key: teamB, Cost: 1}}},
		"timed h": {Deadline: true},
	}[id+" "+hash]
}

func TestCheck(t *testing.T) {
	exec := func(r *results.Record) { r.Host, r.Attempts[0].Host, r.Attempts[0].Charge = "", "", nil }
	untried := func(r *results.Record) { r.Attempts = nil }
	pair := limits.PairKey("api", "b")
	type found = []string
	tests := []struct {
		name    string
		records []results.Record
		want    found // kind, key or job, and microseconds from the start
	}{
		{"three at once on a host that takes three", []results.Record{try("a", 0, 9), try("b", 1, 9), try("c", 2, 9)}, nil},
		{"a fourth", []results.Record{try("a", 0, 9), try("b", 1, 9), try("c", 2, 9), try("d", 8, 10)}, found{"concurrency host/api d 8"}},
		{"a fourth at the moment at which one ends", []results.Record{try("a", 0, 9), try("b", 1, 9), try("c", 2, 9), try("d", 9, 10)}, nil},
		{"one that ends as it starts needs a permit too", []results.Record{try("a", 0, 9), try("b", 0, 9), try("c", 0, 9), try("d", 8, 8)}, found{"concurrency host/api d 8"}},
		{"but three such one after the other share it", []results.Record{try("a", 0, 9), try("b", 0, 9), try("c", 8, 8), try("d", 8, 8)}, nil},
		{"and whoever comes at that moment takes it over", []results.Record{try("a", 0, 9), try("b", 0, 9), try("c", 8, 8), try("d", 8, 9)}, nil},
		{"an account is counted over all hosts", []results.Record{
			try("a", 0, 9, account("b")), try("b", 0, 9, account("b")),
			try("c", 5, 9, exec, func(r *results.Record) {
				r.Account = "b"
				r.Attempts[0].Charge = map[limits.Key]int64{teamB: 0}
			}),
		}, found{"concurrency account/b c 5"}},
		{"six without any key, where a run has five under way at most", []results.Record{
			try("a", 0, 9, exec), try("b", 0, 9, exec), try("c", 0, 9, exec), try("d", 0, 9, exec), try("e", 0, 9, exec), try("f", 3, 9, exec),
		}, found{"concurrency global f 3"}},
		{"the cap is each run's own", []results.Record{
			try("a", 0, 9, exec), try("b", 0, 9, exec), try("c", 0, 9, exec), try("d", 0, 9, exec), try("e", 0, 9, exec),
			try("f", 3, 9, exec, record("other", "h", results.Succeeded)),
		}, nil},

		{"the burst at once", []results.Record{try("a", 0, 1, cost(4))}, nil},
		{"a token more than the burst", []results.Record{try("a", 0, 1, cost(5))}, found{"rate host/api a 0"}},
		{"the next token when it is there", []results.Record{try("a", 0, 1, cost(4)), try("b", 50_000, 50_001)}, nil},
		{"the next token a microsecond before", []results.Record{try("a", 0, 1, cost(4)), try("b", 49_999, 50_000)}, found{"rate host/api b 49999"}},
		{"idling saves up no more than the burst", []results.Record{
			try("a", 0, 1), try("b", 20*second, 20*second+1, cost(4)), try("c", 20*second+49_999, 20*second+50_000),
		}, found{"rate host/api c 20049999"}},
		{"a window that no single gap breaks", []results.Record{
			try("a", 0, 1, cost(3)), try("b", 50_000, 50_001, cost(1)), try("c", 100_000, 100_001, cost(2)), try("d", 149_999, 150_000),
		}, found{"rate host/api d 149999"}},
		{"costs beyond all counting", []results.Record{try("a", 0, 1, cost(1<<62)), try("b", 1, 2, cost(1<<62)), try("c", 2, 3, cost(1<<62))}, found{"rate host/api a 0"}},
		{"a cost below zero earns nothing", []results.Record{try("a", 0, 1, cost(-9)), try("b", 1, 2, cost(5))}, found{"unpaid host/api a 0", "rate host/api b 1"}},

		{"started at the deadline", []results.Record{try("a", 7, 9, deadline(7))}, nil},
		{"started after the deadline", []results.Record{try("a", 8, 9, deadline(7))}, found{"late a 8"}},
		{"admitted in time, started late", []results.Record{try("a", 6, 9, deadline(7), func(r *results.Record) {
			r.Attempts[0].StartedAt = results.At(start + 8)
		})}, found{"late a 8"}},

		{"inside a pause of the host", []results.Record{try("a", 0, 5, told(api, 100)), try("b", 99, 101)}, found{"pause host/api b 99"}},
		{"when the pause ends, and before the answer came", []results.Record{try("a", 0, 5, told(api, 100)), try("b", 5, 6), try("c", 100, 101)}, nil},
		{"a pause ends no longer one", []results.Record{
			try("a", 0, 5, told(api, 100)), try("b", 1, 6, told(api, 50)), try("c", 60, 61),
		}, found{"pause host/api c 60"}},
		{"a pair's pause holds the pair", []results.Record{try("a", 0, 5, account("b"), told(pair, 100)), try("b", 50, 60, account("b"))}, found{"pause pair/api/b b 50"}},
		{"a pair's pause holds nobody else", []results.Record{try("a", 0, 5, account("b"), told(pair, 100)), try("b", 50, 60, account("a"))}, nil},
		{"a hint that paused nothing", []results.Record{try("a", 0, 5, func(r *results.Record) {
			r.Attempts[0].Hint = &results.Hint{Until: results.At(start + 100)}
		}), try("b", 50, 60)}, nil},

		{"two records of one run", []results.Record{try("a", 0, 1, record("r", "h", results.Failed)), try("a", 2, 3)}, found{"doubled a 3"}},
		{"run again after it failed", []results.Record{try("a", 0, 1, record("r", "h", results.Failed)), try("a", 2, 3, record("s", "h", results.Succeeded))}, nil},
		{"run again after it succeeded", []results.Record{try("a", 0, 1), try("a", 2, 3, record("s", "h", results.Failed))}, found{"doubled a 3"}},
		{"the same from files in the other order", []results.Record{try("a", 2, 3, record("s", "h", results.Failed)), try("a", 0, 1)}, found{"doubled a 3"}},
		{"run again after it was changed", []results.Record{try("a", 0, 1), try("a", 2, 3, record("s", "changed", results.Succeeded))}, nil},

		{"admitted without its account", []results.Record{try("a", 0, 1, func(r *results.Record) { r.Account = "b" })}, found{"unpaid account/b a 0"}},
		{"paid less than nothing", []results.Record{try("a", 0, 1, cost(-1))}, found{"unpaid host/api a 0"}},
		{"paid less than the job costs", []results.Record{try("dear", 0, 1, cost(1))}, found{"unpaid host/api dear 0"}},
		{"paid what the job costs", []results.Record{try("dear", 0, 1, cost(2))}, nil},
		{"paid what a job cost before it was changed", []results.Record{try("dear", 0, 1, cost(1), record("r", "changed", results.Succeeded))}, nil},
		{"admitted without an account that only the job file knows", []results.Record{try("team", 0, 1)}, found{"unpaid account/b team 0"}},
		{"started without its deadline", []results.Record{try("timed", 3, 9)}, found{"late timed 3"}},
		{"started with its deadline", []results.Record{try("timed", 3, 9, deadline(7))}, nil},
		{"succeeded without an attempt", []results.Record{try("a", 0, 1, untried)}, found{"damaged a 1"}},
		{"failed without an attempt", []results.Record{try("a", 0, 1, untried, record("r", "h", results.Failed))}, nil},
		{"deferred without a reason", []results.Record{try("timed", 0, 1, untried, record("r", "h", results.Deferred))}, found{"damaged timed 1"}},
		{"ended before it was admitted", []results.Record{try("a", 5, 4)}, found{"damaged a 5"}},
		{"without any times", []results.Record{try("a", -start, -start)}, found{"damaged a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got found
			for _, v := range Check(each(tt.records), Spec{Limits: limitOf, Terms: termsOf}).Violations {
				got = append(got, brief(v))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

// brief spells a violation: kind, key, job, and microseconds from the start.
func brief(v Violation) string {
	words := []string{string(v.Kind)}
	if v.Key != (limits.Key{}) {
		words = append(words, v.Key.String())
	}
	if v.Job != "" {
		words = append(words, v.Job)
	}
	if at := v.At.Limits(); at != 0 {
		words = append(words, fmt.Sprint(int64(at-start)))
	}
	return strings.Join(words, " ")
}

func TestJobsAreHeldAgainstTheFile(t *testing.T) {
	records := []results.Record{try("b", 2, 3), try("a", 0, 1), try("line-7", 4, 4, record("r", "", results.Invalid))}
	tests := []struct {
		name string
		jobs []string
		want []string
	}{
		{"each has its record; a bad line is in no file", []string{"a", "b"}, nil},
		{"one was lost", []string{"a", "b", "c"}, []string{`job "c" has no record`}},
		{"one was never asked for", []string{"a"}, []string{`job "b" is in no job file`}},
		{"no job was asked for", []string{}, []string{`job "a" is in no job file`, `job "b" is in no job file`}},
	}
	for _, tt := range tests {
		var got []string
		for _, v := range Check(each(records), Spec{Limits: limitOf, Jobs: slices.Values(tt.jobs)}).Violations {
			got = append(got, v.Message)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Check (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestBadLinesAreHeldAgainstTheFile has bad lines of a job file be records, whatever
// name of the file they were read by. A record of a line that is none any more was
// right when it was written.
func TestBadLinesAreHeldAgainstTheFile(t *testing.T) {
	bad := record("r", "", results.Invalid)
	records := []results.Record{
		try("<stdin>:7:12", 4, 4, bad), try("/dev/fd/63:7", 4, 4, bad), try("rows:9", 4, 4, bad), try("a:8:1", 4, 5),
	}
	tests := []struct {
		name string
		bad  []string
		want []string
	}{
		{"all lines were repaired since", nil, nil},
		{"each has its record", []string{"jobs.jsonl:7:12", "rows.csv:7", "x:9"}, nil},
		{"one has none: it is a job's, of another column, or another line's", []string{"jobs.jsonl:8:1", "jobs.jsonl:7:2", "rows.csv:17"}, []string{
			"the bad line jobs.jsonl:8:1 has no record", "the bad line jobs.jsonl:7:2 has no record", "the bad line rows.csv:17 has no record"}},
		{"one record is for one of two", []string{"a.jsonl:7:12", "b.jsonl:7:12"}, []string{"the bad line b.jsonl:7:12 has no record"}},
	}
	for _, tt := range tests {
		var got []string
		for _, v := range Check(each(records), Spec{Limits: limitOf, Jobs: slices.Values([]string{"a:8:1"}), Bad: tt.bad}).Violations {
			got = append(got, string(v.Kind)+": "+v.Message)
		}
		for i := range tt.want {
			tt.want[i] = "lost: " + tt.want[i]
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Check (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestRecordsOfNothing has records that no job ends with.
func TestRecordsOfNothing(t *testing.T) {
	for _, r := range []results.Record{{ID: "a", Status: "new"}, {Status: results.Succeeded}} {
		found := Check(each([]results.Record{r}), Spec{Limits: limitOf}).Violations
		if len(found) != 1 || found[0].Kind != Damaged {
			t.Errorf("Check of %+v = %v, want that it is damaged", r, found)
		}
	}
}

func TestMessagesAreForPeople(t *testing.T) {
	records := []results.Record{
		try("a", 0, second, cost(3), told(api, 3*second)), try("b", 1, second), try("c", 2, second), try("d", second+second/2, 2*second),
		try("e", 1, second), try("f", 5*second, 6*second, deadline(2*second)), try("g", 5*second, 4*second), try("h", 8*second, 8*second, func(r *results.Record) { r.Pools = []string{"llm"} }),
	}
	want := []string{
		`job "f" was started 3s after its deadline`,
		`job "g": an attempt was not admitted, started and ended in this order`,
		`job "h" was admitted without pool/llm`,
		`host/api: job "d" was admitted 1.5s before the end of the pause that job "a" was asked for`,
		`host/api: 4 under way where 3 may be, when job "c" was admitted`,
		`host/api: 5 tokens spent within 1µs where 4 may be, the last by job "e"`,
	}
	var got []string
	for _, v := range Check(each(records), Spec{Limits: limitOf}).Violations {
		got = append(got, v.Message)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestPauseLag(t *testing.T) {
	records := []results.Record{try("a", 0, 5, told(api, 100)), try("b", 15, 20), try("c", 16, 20)}
	for lag, want := range map[time.Duration]string{0: "b", 10 * time.Microsecond: "c"} {
		got := Check(each(records), Spec{Limits: limitOf, PauseLag: lag}).Violations
		if len(got) != 1 || got[0].Job != want {
			t.Errorf("Check with a lag of %v = %v, want job %q in the pause", lag, got, want)
		}
	}
}

func TestReportSaysHowCloseItWas(t *testing.T) {
	records := []results.Record{
		try("a", 0, 9, cost(2), account("b")), try("b", 5, 20, account("b")), try("c", 10, 11),
		try("d", 10*second, 11*second),
	}
	want := Report{Records: 4, Attempts: 4, Keys: []KeyReport{
		{Key: limits.Key{Kind: limits.Global, Name: "r"}, Run: "r", Limit: limits.Limit{Concurrency: 5}, Bounds: results.Bounds{Concurrency: 5}, Started: 4, Peak: 2},
		{Key: api, Limit: table[api], Bounds: results.Bounds{Concurrency: 3, Rate: "20/s", Burst: 4}, Started: 4, Peak: 2, Tightest: &Window{From: results.At(start), To: results.At(start + 10), Spent: 4, Allowed: 4}},
		{Key: teamB, Limit: table[teamB], Bounds: results.Bounds{Concurrency: 2}, Started: 2, Peak: 2},
	}}
	if diff := cmp.Diff(want, Check(each(records), Spec{Limits: limitOf})); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	records := []results.Record{try("a", 0, 9, cost(2)), try("b", 5, 5), try("c", 9, 12), try("d", 9, 11, account("b"))}
	var got []string
	Check(each(records), Spec{Limits: limitOf, Watch: func(k *KeyReport, at limits.Time, underWay, spent int64) {
		if k.Key.Kind != limits.Account {
			got = append(got, fmt.Sprintf("%v of %d: %d: %d, %d tokens", k.Key, k.Started, at-start, underWay, spent))
		}
	}})
	want := []string{
		"global of 4: 0: 1, 0 tokens", "global of 4: 5: 2, 0 tokens", "global of 4: 5: 1, 0 tokens", "global of 4: 9: 0, 0 tokens",
		"global of 4: 9: 1, 0 tokens", "global of 4: 9: 2, 0 tokens", "global of 4: 11: 1, 0 tokens", "global of 4: 12: 0, 0 tokens",
		"host/api of 4: 0: 1, 2 tokens", "host/api of 4: 5: 2, 1 tokens", "host/api of 4: 5: 1, 0 tokens", "host/api of 4: 9: 0, 0 tokens",
		"host/api of 4: 9: 1, 1 tokens", "host/api of 4: 9: 2, 1 tokens", "host/api of 4: 11: 1, 0 tokens", "host/api of 4: 12: 0, 0 tokens",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Watch was told (-want +got):\n%s", diff)
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	records := func(yield func(results.Record, error) bool) {
		_ = yield(try("a", 0, 1), nil) && yield(results.Record{}, errors.New("line 2: torn")) && yield(try("b", 1, 2), nil)
	}
	got := Check(records, Spec{Limits: limitOf})
	if want := []Violation{{Kind: Damaged, Message: "line 2: torn"}}; !cmp.Equal(got.Violations, want) || got.Records != 2 {
		t.Errorf("Check = %+v, want both records and %v", got, want)
	}
}

func BenchmarkCheck(b *testing.B) {
	const n = 1_000_000
	records := func(yield func(results.Record, error) bool) {
		for i := range limits.Time(n) {
			r := try(fmt.Sprint("job-", i*7919%n), i*50_000, i*50_000+100_000, account("b"))
			if !yield(r, nil) {
				return
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := Check(records, Spec{Limits: limitOf}); got.Attempts != n {
			b.Fatal(got)
		}
	}
}
