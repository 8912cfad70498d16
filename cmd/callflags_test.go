package cmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/jobspec"
	"agentlimit/limits"
)

// entry is a limit as a file would have it.
type entry = map[string]any

var limitSpellings = []struct {
	about, typed string
	want         typedLimits // nil: it is refused
}{
	{"a concurrency", "host/api.example.com=4", typedLimits{"hosts": {"api.example.com": entry{"concurrency": 4}}}},
	{"all three, in any order", "account/a=burst=20,10/s,4", typedLimits{"accounts": {"a": entry{"concurrency": 4, "rate": "10/s", "burst": 20}}}},
	{"a pattern", "host/*=2", typedLimits{"hosts": {"*": entry{"concurrency": 2}}}},
	{"a port", "host/[::1]:8080=5/15s", typedLimits{"hosts": {"[::1]:8080": entry{"rate": "5/15s"}}}},
	{"a name with a slash", "pool/a/b=1", typedLimits{"pools": {"a/b": entry{"concurrency": 1}}}},
	{"no limit", "host/a=", nil},
	{"nothing behind a comma", "host/a=1,", nil},
	{"no name", "host/=1", nil},
	{"no kind", "a=1", nil},
	{"another kind", "pair/a=1", nil},
	{"none at once", "host/a=0", nil},
	{"fewer than none", "host/a=-1", nil},
	{"a part of one", "host/a=1.5", nil},
	{"a plus sign", "host/a=+4", nil},
	{"a leading zero", "host/a=04", nil},
	{"a blank", "host/a= 4", nil},
	{"a rate of zero", "host/a=0/s", nil},
	{"a rate without a unit", "host/a=10/", nil},
	{"an unknown unit", "host/a=10/min", nil},
	{"a burst of zero", "host/a=1/s,burst=0", nil},
	{"two of a kind", "host/a=1,2", nil},
	{"two rates", "host/a=1/s,2/s", nil},
	{"an unknown word", "host/a=many", nil},
	{"more than can be counted", "host/a=99999999999999999999", nil},
}

func TestLimitFlag(t *testing.T) {
	for _, test := range limitSpellings {
		got := make(typedLimits)
		if err := limitFlag(got).Set(test.typed); (err == nil) != (test.want != nil) {
			t.Errorf("%s: --limit %q: %v", test.about, test.typed, err)
		} else if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
			t.Errorf("%s: --limit %q (-want +got):\n%s", test.about, test.typed, diff)
		}
	}
}

// FuzzLimitFlag has a limit that the flag takes be understood as a file understands
// the same, or be refused as that refuses it.
func FuzzLimitFlag(f *testing.F) {
	for _, test := range limitSpellings {
		f.Add(test.typed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		flag, file := make(typedLimits), make(typedLimits)
		if limitFlag(flag).Set(typed) != nil {
			if len(flag) > 0 {
				t.Fatalf("--limit %q is refused, and leaves %v", typed, flag)
			}
			return
		}
		key, list, _ := strings.Cut(typed, "=")
		kind, name, _ := strings.Cut(key, "/")
		text := entry{}
		for part := range strings.SplitSeq(list, ",") {
			switch value, burst := strings.CutPrefix(part, "burst="); {
			case burst:
				text["burst"] = json.Number(value)
			case strings.Contains(part, "/"):
				text["rate"] = part
			default:
				text["concurrency"] = json.Number(part)
			}
		}
		file.set(kind+"s", name, text)
		of := limits.Key{Kind: map[string]limits.Kind{"host": limits.Host, "account": limits.Account, "pool": limits.Pool}[kind], Name: name}
		one, oneErr := limitsOfDocument(flag, of)
		two, twoErr := limitsOfDocument(file, of)
		if one != two || fmt.Sprint(oneErr) != fmt.Sprint(twoErr) {
			t.Fatalf("--limit %q is %v (%v), in a file %v (%v)", typed, one, oneErr, two, twoErr)
		}
	})
}

// limitsOfDocument returns what a document with those limits means for a key.
func limitsOfDocument(l typedLimits, key limits.Key) (limits.Limit, error) {
	doc, err := json.Marshal(map[string]any{"limits": l, "jobs": []any{}})
	if err != nil {
		return limits.Limit{}, err
	}
	spec, err := jobspec.Load(jobspec.Options{Document: doc})
	if err != nil {
		return limits.Limit{}, err
	}
	return spec.Limits.For(key), nil
}
