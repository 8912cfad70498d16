package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"agentlimit/limits"
	"agentlimit/runner/audit"
	"agentlimit/runner/results"
)

const ms = limits.Time(1000)

// told are the records of two runs: the first, of three jobs, was stopped, and the
// second took up one of them a day later.
func told() []results.Record {
	ok := attempted("ok", rare.Name, began, 100*time.Millisecond)
	ok.Attempts[0].Waited = results.Waits{Total: 2, Host: 2}
	again := attempted("again", rare.Name, began+50*ms, 100*time.Millisecond)
	again.Status, again.Error = results.Failed, &results.Error{Kind: "status", Message: `status 500 | "why"`}
	again.Attempts[0].Outcome, again.Attempts[0].Status, again.Attempts[0].Error = "failed", 500, "status 500,\nat length"
	late := results.Record{
		Run: "first", ID: "late", Status: results.Deferred, Host: rare.Name, EndedAt: results.At(began + 200*ms),
		Deferred: &results.Deferral{Reason: "host rare.example.com: no token before the deadline", RetryAt: results.At(began + 9*second)},
	}
	taken := attempted("again", rare.Name, began+24*3600*second, 300*time.Millisecond)
	taken.Run, taken.QueuedAt = "second", taken.Attempts[0].AdmittedAt
	taken.Attempts[0].Hint = &results.Hint{Key: &rare, Until: results.At(began + 24*3600*second + 400*ms)}
	return []results.Record{ok, again, late, taken}
}

func reportOf(t *testing.T, records ...results.Record) *Report {
	t.Helper()
	r, err := New(listed(records...), Options{Title: "told", Limits: limitOf})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNew(t *testing.T) {
	day := began + 24*3600*second
	one := &audit.Window{From: results.At(began), To: results.At(began), Spent: 1, Allowed: 10}
	want := &Report{
		V: 1, Title: "told", Runs: 2, StartedAt: results.At(began), EndedAt: results.At(day + 300*ms), Took: 500, Jobs: 3, Attempts: 3,
		Statuses: map[results.Status]int64{"succeeded": 2, "deferred": 1, "failed": 0, "unknown": 0, "interrupted": 0, "invalid": 0},
		Waited:   results.Waits{Total: 2, Host: 2},
		Troubles: Troubles{{Kind: "deferred", Jobs: 1, First: "late", Reason: "host rare.example.com: no token before the deadline", RetryAt: results.At(began + 9*second)}},
		Keys: []*Key{
			{KeyReport: audit.KeyReport{Started: 3, Peak: 2}, Waited: results.Waits{Total: 2, Host: 2}},
			{KeyReport: audit.KeyReport{Key: rare, Limit: limitOf(rare), Bounds: results.Bounds{Concurrency: 4, Rate: "25/s", Burst: 10}, Started: 3, Peak: 2, Tightest: one}, Waited: results.Waits{Total: 2, Host: 2}, Held: 500 * time.Millisecond, Spent: 3},
			{KeyReport: audit.KeyReport{Key: teamA, Started: 3, Peak: 2}, Waited: results.Waits{Total: 2, Host: 2}, Held: 500 * time.Millisecond, Spent: 3},
		},
		Hosts:  []*Latency{{Host: rare.Name, Attempts: 3, P50: 100, P90: 300, P99: 300, Max: 300}},
		Pauses: []Pause{{rare, results.At(day + 300*ms), results.At(day + 400*ms)}},
	}
	files := map[string][]results.Record{"in order": told(), "the newer file first": append(told()[3:], told()[:3]...)}
	for name, records := range files {
		if diff := cmp.Diff(want, reportOf(t, records...), cmpopts.IgnoreUnexported(Report{}, Latency{})); diff != "" {
			t.Errorf("New of two runs, %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNewWithoutLimits(t *testing.T) {
	r, err := New(listed(told()...), Options{})
	if err != nil || r.Keys[1].Peak != 2 || r.Keys[1].Concurrency != 0 || r.Keys[1].Tightest != nil {
		t.Errorf("New = %+v, %v; want a peak without a cap", r.Keys[1], err)
	}
}

func TestErrorsOfRecords(t *testing.T) {
	bad := errors.New("bad line")
	records := func(yield func(results.Record, error) bool) {
		_ = yield(told()[0], nil) && yield(results.Record{}, bad) && yield(told()[1], nil)
	}
	if r, err := New(records, Options{}); r != nil || err != bad {
		t.Errorf("New = %v, %v; want the error of the records", r, err)
	}
	if err := CSV(io.Discard, records); err != bad {
		t.Errorf("CSV = %v, want the error of the records", err)
	}
}

// writers are all formats but CSV, which needs no report.
func writers(r *Report) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{"JSON": r.JSON, "Markdown": r.Markdown, "JUnit": r.JUnit, "HTML": r.HTML}
}

func TestOddRecords(t *testing.T) {
	instant := attempted("instant", "", began, 0)
	backwards := attempted("backwards", "h", began, -time.Second)
	timeless := results.Record{ID: "timeless", Status: results.Failed, HTTP: &results.HTTP{Status: 429}, Attempts: []results.Attempt{{}}}
	colours := attempted("\x1b[31m\a", "\x1b[31m\x00", began, 0)
	colours.Status, colours.Error = results.Failed, &results.Error{Kind: "\x1b", Message: "\x1b[31m"}
	for name, records := range map[string][]results.Record{
		"for a terminal": {colours}, "none": nil, "of no length": {instant}, "that end before they start": {backwards}, "without times": {timeless}, "all": {timeless, instant, backwards},
	} {
		r := reportOf(t, records...)
		for format, write := range writers(r) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Errorf("%s of records %s: %v", format, name, err)
			}
			if strings.ContainsAny(b.String(), "\x00\x1b\a") {
				t.Errorf("%s of records %s holds control characters", format, name)
			}
		}
	}
}

// broken is a writer that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestErrorsOfWriters(t *testing.T) {
	for format, write := range writers(reportOf(t, told()...)) {
		if err := write(broken{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s to a broken writer: %v, want its error", format, err)
		}
	}
	if err := CSV(broken{}, listed(told()...)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CSV to a broken writer: %v, want its error", err)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := reportOf(t, told()...).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"attempts", "ended_at", "hosts", "jobs", "keys", "pauses", "runs", "started_at", "statuses", "title", "took_ms", "troubles", "v", "waited"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the names in JSON (-want +got):\n%s", diff)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, listed(told()...)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\r\n"); lines != 6 { // one is in a field
		t.Errorf("%d lines end as RFC 4180 says, want 6:\n%s", lines, b.String())
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v; want five", len(rows), err)
	}
	cell := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	for _, want := range []struct {
		row           int
		column, value string
	}{
		{1, "id", "ok"}, {1, "attempt", "1"}, {1, "took_ms", "100.000"}, {1, "waited_ms", "2.000"}, {1, "host_ms", "2.000"}, {1, "http_status", "200"},
		{1, "exit_code", ""}, {2, "error", "status 500,\nat length"}, {2, "reason", `account/team-a: status 500 | "why"`}, {2, "outcome", "failed"},
		{3, "id", "late"}, {3, "attempt", "0"}, {3, "took_ms", ""}, {3, "retry_at", "2030-03-17T17:46:49Z"}, {4, "run", "second"},
	} {
		if got := cell(want.row, want.column); got != want.value {
			t.Errorf("row %d has the %s %q, want %q", want.row, want.column, got, want.value)
		}
	}
}

// junitRules are what the schemas of Jenkins and of Ant want of an element: its
// attributes, and the children that it may have, in their order.
var junitRules = map[string]struct{ attributes, children string }{
	"testsuites": {"", "testsuite"},
	"testsuite":  {"errors failures hostname id name package skipped tests time timestamp", "properties testcase system-out system-err"},
	"properties": {"", ""},
	"testcase":   {"classname name time", "failure error skipped"},
	"failure":    {"message type", ""},
	"error":      {"message type", ""},
	"skipped":    {"message type", ""},
	"system-out": {"", ""},
	"system-err": {"", ""},
}

// junitTypes are what the attributes may hold. Any other holds any text.
var junitTypes = map[string]*regexp.Regexp{
	"testsuite tests": whole, "testsuite failures": whole, "testsuite errors": whole, "testsuite skipped": whole, "testsuite id": whole,
	"testsuite time": decimal, "testcase time": decimal, "testsuite timestamp": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`),
	"testsuite name": some, "testsuite hostname": some, "testsuite package": some, "testcase classname": some, "failure type": some, "error type": some,
}

var whole, decimal, some = regexp.MustCompile(`^\d+$`), regexp.MustCompile(`^\d+\.\d+$`), regexp.MustCompile(`\S`)

// element is any XML element.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

func (e element) check(t *testing.T) {
	t.Helper()
	var attributes []string
	for _, a := range e.Attrs {
		attributes = append(attributes, a.Name.Local)
	}
	for _, a := range e.Attrs {
		if of := e.XMLName.Local + " " + a.Name.Local; junitTypes[of] != nil && !junitTypes[of].MatchString(a.Value) {
			t.Errorf("<%s=%q>, want %v", of, a.Value, junitTypes[of])
		}
	}
	slices.Sort(attributes)
	rule, known := junitRules[e.XMLName.Local]
	if !known || strings.Join(attributes, " ") != rule.attributes {
		t.Errorf("<%s> has the attributes %v, want %s", e.XMLName.Local, attributes, rule.attributes)
	}
	last := 0
	for i, child := range e.Children {
		at := slices.Index(strings.Fields(rule.children), child.XMLName.Local)
		many := child.XMLName.Local == "testcase" || child.XMLName.Local == "testsuite"
		if at < last || at == last && i > 0 && !many || e.XMLName.Local == "testcase" && i > 0 {
			t.Errorf("<%s> has <%s>, want %s in this order", e.XMLName.Local, child.XMLName.Local, rule.children)
		}
		last = at
		child.check(t)
	}
}

func (e element) get(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func TestJUnit(t *testing.T) {
	records := append(told(), attempted("bad", "h", began, time.Second), attempted("lost\x00\x1b <i>", "h", began, time.Second))
	records[4].Status, records[4].Error = results.Failed, &results.Error{Kind: "status", Message: "status 404\x00]]>"}
	records[5].Status, records[5].Error = results.Unknown, &results.Error{Kind: "lost", Message: "no answer"}
	var b bytes.Buffer
	if err := reportOf(t, records...).JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var root element
	if err := xml.Unmarshal(b.Bytes(), &root); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	root.check(t)
	suite := root.Children[0]
	got := map[string]string{"tests": suite.get("tests") + " " + suite.get("failures") + " " + suite.get("errors") + " " + suite.get("skipped")}
	for _, c := range suite.Children {
		if c.XMLName.Local == "testcase" {
			got[c.get("name")] = "passed"
			for _, cause := range c.Children {
				got[c.get("name")] = cause.XMLName.Local + ": " + cause.get("message")
			}
		}
	}
	want := map[string]string{
		"tests": "5 1 1 1", "ok": "passed", "again": "passed", "bad": "failure: account/team-a: status 404\ufffd]]>",
		"late": "skipped: host rare.example.com: no token before the deadline", "lost\ufffd\ufffd <i>": "error: account/team-a: no answer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the test cases (-want +got):\n%s", diff)
	}
}

// TestJUnitOfOddRecords keeps to the rules whatever is reported.
func TestJUnitOfOddRecords(t *testing.T) {
	odd := results.Record{Status: "new"}
	spoilt := attempted("a", "", began, -time.Second)
	spoilt.Status, spoilt.Error = results.Failed, &results.Error{}
	for name, records := range map[string][]results.Record{"nothing": nil, "a record that says nothing": {odd}, "an attempt that ends before it starts": {spoilt}} {
		var b bytes.Buffer
		if err := reportOf(t, records...).JUnit(&b); err != nil {
			t.Fatal(err)
		}
		var root element
		if err := xml.Unmarshal(b.Bytes(), &root); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, &b)
		}
		root.check(t)
	}
}

func TestMarkdown(t *testing.T) {
	const attack = "<script>a</script> | **b** `c` [d](http://e) ![f](g) \\| $h$ &amp; _i_\n# j"
	records := told()
	records[0].ID, records[0].Status, records[0].Error = attack, results.Failed, &results.Error{Message: attack}
	records[0].Account = ""
	var b bytes.Buffer
	r := reportOf(t, records...)
	r.Title = attack
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	source := b.Bytes()
	tree := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Linkify)).Parser().Parse(text.NewReader(source))
	kinds := make(map[string]int)
	var cells []string
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			kinds[n.Kind().String()]++
			if n.Kind() == tables.KindTableCell {
				cells = append(cells, plain(n, source))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int{"Table": 3, "TableHeader": 3, "TableRow": 2 + 3 + 1, "Heading": 4, "Emphasis": 1, "RawHTML": 0, "HTMLBlock": 0, "CodeSpan": 0, "Link": 0, "Image": 0, "AutoLink": 0} {
		if kinds[kind] != want {
			t.Errorf("%d nodes %s, want %d:\n%s", kinds[kind], kind, want, source)
		}
	}
	if spoken := strings.ReplaceAll(attack, "\n", " "); !slices.Contains(cells, spoken) {
		t.Errorf("no cell says %q:\n%q", spoken, cells)
	}
}

// plain is the text of a node as readers see it.
func plain(n ast.Node, source []byte) string {
	var page strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if leaf, ok := c.(*ast.Text); ok {
			page.Write(leaf.Segment.Value(source))
		}
	}
	var b strings.Builder
	for i, s := 0, page.String(); i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestLinesOverTime(t *testing.T) {
	r := reportOf(t, told()...)
	if want := (axis{{began, began + 200*ms}, {began + 24*3600*second, began + 24*3600*second + 300*ms}}); !slices.Equal(r.axis, want) {
		t.Errorf("the axis is %v, want %v", r.axis, want)
	}
	l := r.lines[0] // of a half second: 1.2 bins a millisecond
	for _, test := range []struct {
		what       string
		bin        int
		most, mean float64
	}{
		{"one at first", 0, 1, 1}, {"two at 75 ms", 90, 2, 2}, {"one again at 125 ms", 150, 1, 1}, {"none until the run ends", 200, 0, 0},
		{"the day between is left out", 241, 1, 1}, {"up to the end", 599, 1, 1},
	} {
		if most, mean := float64(l.most[test.bin]), l.mean[test.bin]; most != test.most || mean < test.mean-0.01 || mean > test.mean+0.01 {
			t.Errorf("%s: bin %d has %v at most, %v on average", test.what, test.bin, most, mean)
		}
	}
}

// TestPageIsBounded has more in it than a page may hold: long names that HTML makes
// longer, and many kinds of trouble, keys and pauses.
func TestPageIsBounded(t *testing.T) {
	quotes := strings.Repeat(`"`, 2000)
	records := func(yield func(results.Record, error) bool) {
		for i := range 4000 {
			name := strings.Repeat("x", i%150) + quotes
			r := attempted(time.Duration(i).String()+name, time.Duration(i%3000).String()+name, began+limits.Time(i)*ms, time.Second)
			r.Account, r.Status, r.Error = name, results.Failed, &results.Error{Message: r.ID}
			r.Attempts[0].Hint = &results.Hint{Key: &limits.Key{Kind: limits.Account, Name: name}, Until: results.At(r.EndedAt.Limits() + 1)}
			if !yield(r, nil) {
				return
			}
		}
	}
	r, err := New(records, Options{Title: quotes})
	if err != nil {
		t.Fatal(err)
	}
	page := string(pageOf(t, r))
	if len(page) > 5e6 {
		t.Errorf("the page has %d bytes, want at most 5 MB", len(page))
	}
	for _, want := range []string{"more jobs, for other reasons", "more hosts with fewer attempts", "more keys, which were used less", "Not shown: "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestTook(t *testing.T) {
	for ms, want := range map[float64]string{
		0: "0 µs", 0.25: "250 µs", 1: "1 ms", 42.66: "42.7 ms", 999.6: "1 s", 1234: "1.23 s", 59_990: "1 min 0 s", 59_940: "59.9 s", 90_000: "1 min 30 s", 5_430_000: "1 h 30 min",
	} {
		if got := took(ms); got != want {
			t.Errorf("took(%v) = %q, want %q", ms, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, test := range []struct {
		s    string
		n    int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"éèàù", 3, "éè…"}, {"ab", 1, "…"}} {
		if got := clip(test.s, test.n); got != test.want {
			t.Errorf("clip(%q, %d) = %q, want %q", test.s, test.n, got, test.want)
		}
	}
}
