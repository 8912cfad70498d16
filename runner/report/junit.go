package report

import (
	"cmp"
	"encoding/xml"
	"io"
	"strconv"
	"time"

	"agentlimit/runner/results"
)

// junitSuites is what readers of JUnit's XML have in common: that of Ant is the
// strictest, and wants the empty elements.
type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string      `xml:"name,attr"`
	Package    string      `xml:"package,attr"`
	ID         int         `xml:"id,attr"`
	Hostname   string      `xml:"hostname,attr"`
	Timestamp  string      `xml:"timestamp,attr"` // UTC, though it may not say so
	Time       string      `xml:"time,attr"`      // seconds, as all times here
	Tests      int64       `xml:"tests,attr"`
	Failures   int64       `xml:"failures,attr"`
	Errors     int64       `xml:"errors,attr"`
	Skipped    int64       `xml:"skipped,attr"`
	Properties struct{}    `xml:"properties"`
	Cases      []junitCase `xml:"testcase"`
	Out        string      `xml:"system-out"`
	Err        string      `xml:"system-err"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitCause `xml:"failure"`
	Error   *junitCause `xml:"error"`
	Skipped *junitCause `xml:"skipped"`
}

type junitCause struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
}

// JUnit writes the jobs as test cases: deferred ones as skipped, failed ones as
// failures, and those of which nobody knows how they would have ended as errors.
func (r *Report) JUnit(w io.Writer) error {
	n := r.Statuses
	suite := junitSuite{
		Name: r.Title, Package: "agentlimit", Hostname: "localhost",
		Timestamp: r.StartedAt.UTC().Format("2006-01-02T15:04:05"), Time: junitSeconds(time.Duration(r.Took * 1e6)),
		Tests: r.Jobs, Failures: n[results.Failed], Skipped: n[results.Deferred],
		Errors: r.Jobs - n[results.Succeeded] - n[results.Failed] - n[results.Deferred],
	}
	for _, j := range r.jobs {
		c := junitCase{Name: j.id, Class: cmp.Or(j.host, "no host"), Time: junitSeconds(j.took)}
		if j.trouble != nil {
			cause := &junitCause{j.trouble.Kind, j.trouble.Why()}
			switch j.status {
			case results.Failed:
				c.Failure = cause
			case results.Deferred:
				c.Skipped = cause
			default:
				c.Error = cause
			}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	lines := xml.NewEncoder(w)
	lines.Indent("", "  ")
	return lines.Encode(junitSuites{Suite: suite})
}

func junitSeconds(d time.Duration) string {
	return strconv.FormatFloat(max(0, d.Seconds()), 'f', 3, 64)
}
