package limits_test

import (
	"testing"

	"agentlimit/limits"
)

// entry builds a table's entry; none of a field is spelled -1, and 0 leaves it out.
func entry(pattern string, concurrency, rate, burst int64) limits.Entry {
	e := limits.Entry{Pattern: pattern}
	if concurrency != 0 {
		e.Concurrency = limits.Field[int64]{Value: max(0, concurrency), Set: true}
	}
	if rate > 0 {
		e.Rate = limits.Field[limits.Rate]{Value: limits.Rate{Tokens: rate, Per: 1e6}, Set: true}
	} else if rate < 0 {
		e.Rate = limits.Field[limits.Rate]{Set: true}
	}
	if burst != 0 {
		e.Burst = limits.Field[int64]{Value: max(0, burst), Set: true}
	}
	return e
}

// limit builds a limit of so many permits and so many tokens a second.
func limit(concurrency, rate, burst int64) limits.Limit {
	l := limits.Limit{Concurrency: concurrency, Burst: burst}
	if rate > 0 {
		l.Rate = limits.Rate{Tokens: rate, Per: 1e6}
	}
	return l
}

func TestTableFor(t *testing.T) {
	tests := []struct {
		name    string
		entries []limits.Entry
		host    string
		want    limits.Limit
	}{
		{"without entries nothing is limited", nil, "a.com", limit(0, 0, 0)},
		{"an entry of another name says nothing", []limits.Entry{entry("b.com", 4, 0, 0)}, "a.com", limit(0, 0, 0)},
		{"the name wins over wildcards", []limits.Entry{entry("*", 1, 0, 0), entry("*.com", 2, 0, 0), entry("a.com", 3, 0, 0)}, "a.com", limit(3, 0, 0)},
		{"the longest wildcard wins, whatever stands first", []limits.Entry{entry("*", 1, 0, 0), entry("*.b.com", 3, 0, 0), entry("*.com", 2, 0, 0)}, "a.b.com", limit(3, 0, 0)},
		{"each field comes from the most exact entry that has it", []limits.Entry{entry("*", 1, 10, 20), entry("*.com", 2, 11, 0), entry("a.com", 3, 0, 0)}, "a.com", limit(3, 11, 20)},
		{"none lifts one field", []limits.Entry{entry("*", 4, 10, 20), entry("a.com", -1, 0, 0)}, "a.com", limit(0, 10, 20)},
		{"without a rate there is no burst", []limits.Entry{entry("*", 4, 10, 20), entry("a.com", 0, -1, 0)}, "a.com", limit(4, 0, 0)},
		{"a lifted burst is the default one", []limits.Entry{entry("*", 4, 200, 20), entry("a.com", 0, 0, -1)}, "a.com", limit(4, 200, 4)},
		{"a rate alone gets the default burst", []limits.Entry{entry("a.com", 0, 200, 0)}, "a.com", limit(0, 200, 4)},
		{"a burst alone limits nothing", []limits.Entry{entry("a.com", 0, 0, 9)}, "a.com", limit(0, 0, 0)},

		{"a wildcard stands for several labels", []limits.Entry{entry("*.com", 2, 0, 0)}, "a.b.c.com", limit(2, 0, 0)},
		{"and for a part of one", []limits.Entry{entry("*box", 2, 0, 0)}, "gpu-box", limit(2, 0, 0)},
		{"but not for nothing", []limits.Entry{entry("*.com", 2, 0, 0), entry("*a.com", 2, 0, 0)}, ".com", limit(0, 0, 0)},
		{"nor for a name that is its own end", []limits.Entry{entry("*a.com", 2, 0, 0)}, "a.com", limit(0, 0, 0)},

		{"a name without a port covers every port", []limits.Entry{entry("a.com", 2, 0, 0)}, "a.com:8080", limit(2, 0, 0)},
		{"a name with the port is more exact", []limits.Entry{entry("a.com", 2, 10, 1), entry("a.com:8080", 3, 0, 0)}, "a.com:8080", limit(3, 10, 1)},
		{"and covers no other", []limits.Entry{entry("a.com:8080", 3, 0, 0)}, "a.com", limit(0, 0, 0)},
		{"nor another port", []limits.Entry{entry("a.com:8080", 3, 0, 0)}, "a.com:9090", limit(0, 0, 0)},
		{"the bare name is more exact than a wildcard with the port", []limits.Entry{entry("a.com", 2, 0, 0), entry("*.com:8080", 3, 0, 0)}, "a.com:8080", limit(2, 0, 0)},
		{"a wildcard without a port covers every port", []limits.Entry{entry("*.com", 2, 0, 0)}, "a.com:8080", limit(2, 0, 0)},
		{"a wildcard with the port is longer", []limits.Entry{entry("*.com", 2, 0, 0), entry("*.com:8080", 3, 0, 0)}, "a.com:8080", limit(3, 0, 0)},

		{"an IPv6 address without a port", []limits.Entry{entry("[::1]", 2, 0, 0)}, "[::1]", limit(2, 0, 0)},
		{"its colons are no port", []limits.Entry{entry("[:", 9, 0, 0), entry("[::1]", 2, 0, 0)}, "[::1]", limit(2, 0, 0)},
		{"an IPv6 address with a port", []limits.Entry{entry("[::1]", 2, 0, 0)}, "[::1]:8080", limit(2, 0, 0)},
	}
	for _, tt := range tests {
		var table limits.Table
		for _, e := range tt.entries {
			if !table.Add(limits.Host, e) {
				t.Fatalf("%s: Add(%q) = false", tt.name, e.Pattern)
			}
		}
		if got := table.For(limits.Key{Kind: limits.Host, Name: tt.host}); got != tt.want {
			t.Errorf("%s: For(host/%s) = %+v, want %+v", tt.name, tt.host, got, tt.want)
		}
	}
}

func TestTableKeepsKindsApart(t *testing.T) {
	var table limits.Table
	if !table.Empty() {
		t.Error("Empty() = false for a new table")
	}
	table.Add(limits.Account, entry("*", 2, 0, 0))
	table.Add(limits.Account, entry("a", 3, 0, 0))
	if table.Empty() {
		t.Error("Empty() = true for a table with wildcards")
	}
	for key, want := range map[limits.Key]limits.Limit{
		{Kind: limits.Account, Name: "a"}:    limit(3, 0, 0),
		{Kind: limits.Account, Name: "b"}:    limit(2, 0, 0),
		{Kind: limits.Account, Name: "a:80"}: limit(2, 0, 0), // only hosts have ports
		{Kind: limits.Host, Name: "a"}:       limit(0, 0, 0),
		{Kind: limits.Pool, Name: "a"}:       limit(0, 0, 0),
		{}:                                   limit(0, 0, 0),
	} {
		if got := table.For(key); got != want {
			t.Errorf("For(%v) = %+v, want %+v", key, got, want)
		}
	}
}

func TestTableRefusesASecondEntry(t *testing.T) {
	for _, pattern := range []string{"a.com", "*.com", "*"} {
		var table limits.Table
		if !table.Add(limits.Host, entry(pattern, 1, 0, 0)) || table.Add(limits.Host, entry(pattern, 2, 0, 0)) {
			t.Errorf("Add(%q) twice: want true, then false", pattern)
		}
		if got := table.For(limits.Key{Kind: limits.Host, Name: "a.com"}); got != limit(1, 0, 0) {
			t.Errorf("after a refused Add(%q): For(host/a.com) = %+v, want the first entry's", pattern, got)
		}
		if !table.Add(limits.Account, entry(pattern, 2, 0, 0)) {
			t.Errorf("Add(%q) for another kind = false", pattern)
		}
		if table.Empty() {
			t.Errorf("Empty() = true with an entry for %q", pattern)
		}
	}
}
