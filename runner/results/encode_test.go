package results

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentlimit/limits"
)

// sameRecord compares moments as moments, and takes an empty list for none.
var sameRecord = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b Time) bool { return a.Equal(b.Time) }),
}

// fill sets everything in v that is written to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case Time:
		v.Set(reflect.ValueOf(Time{time.Unix(1e9, int64(*n)).UTC()}))
		return
	case limits.Key:
		v.Set(reflect.ValueOf(limits.Key{Kind: limits.Host, Name: fmt.Sprint("host-", *n)}))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.25)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d <\"é&>\n", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.Tag.Get("json") != "-" {
				fill(value, n)
			}
		}
	default:
		panic("fill: " + v.Type().String())
	}
}

func full() *Record {
	var r Record
	var n int
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.V = version
	return &r
}

// The encoder is written by hand: what it writes must be what the tags of the
// struct say, for a record with everything and for one with nothing.
func TestEncoderAgreesWithTags(t *testing.T) {
	tests := []struct {
		name   string
		record *Record
	}{
		{"a record with every field set", full()},
		{"a record with no field set", &Record{V: version}},
		{"parts that are there but empty", &Record{V: version, Attempts: []Attempt{{}}, HTTP: &HTTP{}, Exec: &Exec{}, Deferred: &Deferral{}, Error: &Error{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := appendRecord(nil, tt.record)
			want, err := json.Marshal(tt.record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, want), tree(t, line)); diff != "" {
				t.Errorf("appendRecord(%s) (-tags +written):\n%s", tt.name, diff)
			}
			got, err := decode(line, nil)
			if err != nil {
				t.Fatalf("decode(%s): %v", line, err)
			}
			if diff := cmp.Diff(*tt.record, got, sameRecord); diff != "" {
				t.Errorf("decode(appendRecord(r)) (-r +got):\n%s", diff)
			}
		})
	}
}

func tree(t *testing.T, line []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

func TestEncoderWritesOneReadableLine(t *testing.T) {
	at := At(1_000_000)
	r := &Record{
		Run: "r", ID: "a", Status: Succeeded, Kind: "exec", EndedAt: at,
		Attempts: []Attempt{{
			AdmittedAt: at, StartedAt: at, EndedAt: at, Outcome: "ok",
			Charge: map[limits.Key]int64{{Kind: limits.Pool, Name: "b"}: 2, {Kind: limits.Pool, Name: "a"}: 0, {Kind: limits.Host, Name: "z"}: 1},
			Waited: Waits{Total: 120.4, Rate: 120.4},
		}},
		Exec: &Exec{Stdout: "1 < 2 && \u2028é\x00\n"},
	}
	want := `{"v":1,"run":"r","id":"a","status":"succeeded","kind":"exec","ended_at":"1970-01-01T00:00:01.000000000Z",` +
		`"attempts":[{"admitted_at":"1970-01-01T00:00:01.000000000Z","started_at":"1970-01-01T00:00:01.000000000Z",` +
		`"ended_at":"1970-01-01T00:00:01.000000000Z","charge":{"host/z":1,"pool/a":0,"pool/b":2},` +
		`"waited":{"total_ms":120.4,"global_ms":0,"host_ms":0,"account_ms":0,"pool_ms":0,"rate_ms":120.4,` +
		`"pause_ms":0,"backoff_ms":0,"not_before_ms":0},"outcome":"ok"}],` +
		`"exec":{"exit_code":0,"signal":"","stdout":"1 < 2 && ` + "\u2028é" + `\u0000\n","stderr":"","stdout_bytes":0,"stderr_bytes":0}}` + "\n"
	if diff := cmp.Diff(want, string(appendRecord(nil, r))); diff != "" {
		t.Errorf("appendRecord (-want +got):\n%s", diff)
	}
}

func TestEncoderKeepsTheLineJSON(t *testing.T) {
	bad := "a\xff\xfeb"
	r := &Record{
		ID: bad, Labels: map[string]string{bad: bad}, Error: &Error{Message: bad + "<>"},
		HTTP: &HTTP{Body: bad, Headers: map[string][]string{bad: {bad}}},
	}
	line := string(appendRecord(nil, r))
	if !json.Valid([]byte(line)) || strings.Count(line, "\n") != 1 {
		t.Errorf("appendRecord with bytes that are not UTF-8 = %q: want one line of JSON", line)
	}
	if strings.Contains(line, `\u003c`) {
		t.Errorf("appendRecord = %s: want < and > as they are", line)
	}
	if got, err := decode([]byte(line), nil); err != nil || got.ID != "a\ufffd\ufffdb" {
		t.Errorf("decode = %q, %v: want each bad byte as U+FFFD", got.ID, err)
	}
}

func TestTimeHasNineDigitsAndZeroForNone(t *testing.T) {
	tests := []struct {
		name string
		in   limits.Time
		want string
		back limits.Time
	}{
		{"a whole second keeps its zeros", 1_000_000, `"1970-01-01T00:00:01.000000000Z"`, 1_000_000},
		{"a microsecond keeps the zeros in front", 1, `"1970-01-01T00:00:00.000001000Z"`, 1},
		{"a moment of today", 1767225599_999999, `"2025-12-31T23:59:59.999999000Z"`, 1767225599_999999},
		{"no moment", 0, `"0001-01-01T00:00:00.000000000Z"`, 0},
		{"the moment that never comes is none in a record", limits.Never, `"0001-01-01T00:00:00.000000000Z"`, 0},
	}
	for _, tt := range tests {
		got, err := At(tt.in).MarshalJSON()
		if string(got) != tt.want || err != nil {
			t.Errorf("%s: At(%d).MarshalJSON() = %s, %v, want %s", tt.name, tt.in, got, err, tt.want)
		}
		if back := At(tt.in).Limits(); back != tt.back {
			t.Errorf("%s: At(%d).Limits() = %d, want %d", tt.name, tt.in, back, tt.back)
		}
	}
}

// answer is a record as a run of requests writes them.
func answer() *Record {
	now := At(limits.TimeOf(time.Now()))
	return &Record{
		Run: "20260102T030405", ID: "list-users-000123", Status: Succeeded, Kind: "http", Host: "api.example.com", Account: "team-a",
		Hash: "sha256:" + strings.Repeat("ab", 32), QueuedAt: now, EndedAt: now,
		Attempts: []Attempt{{
			Host: "api.example.com", AdmittedAt: now, StartedAt: now, EndedAt: now,
			Charge: map[limits.Key]int64{{Kind: limits.Host, Name: "api.example.com"}: 1, {Kind: limits.Account, Name: "team-a"}: 1},
			Waited: Waits{Total: 120.4, Account: 80.1, Rate: 40.3}, Outcome: "ok", Status: 200,
		}},
		HTTP: &HTTP{
			Status: 200, URL: "https://api.example.com/users?page=1", BodyBytes: 560, Body: strings.Repeat(`{"a":"b c d"},`, 40),
			Headers: map[string][]string{"Content-Type": {"application/json"}, "Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Content-Length": {"560"}},
		},
	}
}

func BenchmarkEncode(b *testing.B) {
	r := answer()
	b.ReportAllocs()
	var line []byte
	for b.Loop() {
		line = appendRecord(line[:0], r)
	}
	b.SetBytes(int64(len(line)))
}

func BenchmarkDecode(b *testing.B) {
	line := appendRecord(nil, answer())
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := decode(line, nil); err != nil {
			b.Fatal(err)
		}
	}
}
