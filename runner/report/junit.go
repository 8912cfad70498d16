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
	Name       string     `xml:"name,attr"`
	Package    string     `xml:"package,attr"`
	ID         int        `xml:"id,attr"`
	Hostname   string     `xml:"hostname,attr"`
	Timestamp  string     `xml:"timestamp,attr"` // UTC, though it may not say so
	Time       string     `xml:"time,attr"`      // seconds, as all times here
	Tests      int64      `xml:"tests,attr"`
	Failures   int64      `xml:"failures,attr"`
	Errors     int64      `xml:"errors,attr"`
	Skipped    int64      `xml:"skipped,attr"`
	Properties struct{}   `xml:"properties"`
	Cases      junitCases `xml:"testcase"`
	Out        string     `xml:"system-out"`
	Err        string     `xml:"system-err"`
}

// junitCases are the jobs of a report, each made a case when its turn comes.
type junitCases struct{ *Report }

// MarshalXML writes an element for each job.
func (c junitCases) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	for i := range c.jobs {
		if err := e.EncodeElement(caseOf(&c.jobs[i]), start); err != nil {
			return err
		}
	}
	return nil
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
		Cases:  junitCases{r},
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	lines := xml.NewEncoder(w)
	lines.Indent("", "  ")
	return lines.Encode(junitSuites{Suite: suite})
}

func caseOf(j *job) junitCase {
	c := junitCase{Name: j.id, Class: cmp.Or(j.host.Value(), "no host"), Time: junitSeconds(j.took)}
	if j.trouble != nil {
		cause := &junitCause{j.trouble.Kind, j.trouble.Why()}
		switch j.status.Value() {
		case results.Failed:
			c.Failure = cause
		case results.Deferred:
			c.Skipped = cause
		default:
			c.Error = cause
		}
	}
	return c
}

func junitSeconds(d time.Duration) string {
	return strconv.FormatFloat(max(0, d.Seconds()), 'f', 3, 64)
}
