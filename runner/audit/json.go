package audit

import (
	"encoding/json"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// shown is how many violations are told of as JSON.
const shown = 100

// proof is a report as JSON.
type proof struct {
	V          int         `json:"v"`       // of the format: 1
	Verdict    string      `json:"verdict"` // "kept", or "broken"
	Records    int         `json:"records"`
	Attempts   int         `json:"attempts"`
	Keys       []KeyReport `json:"keys"`
	Broken     int         `json:"broken"`     // how many violations there are
	Violations []breach    `json:"violations"` // the first of them
}

type breach struct {
	Kind    Kind         `json:"kind"`
	Key     *limits.Key  `json:"key,omitempty"`
	Job     string       `json:"job,omitempty"`
	At      results.Time `json:"at,omitzero"`
	Message string       `json:"message"`
}

// JSON returns the report as one object, with the first of its violations.
func (r *Report) JSON() string {
	p := proof{
		V: 1, Verdict: "kept", Records: r.Records, Attempts: r.Attempts, Keys: append([]KeyReport{}, r.Keys...),
		Broken: len(r.Violations), Violations: []breach{},
	}
	for _, v := range r.Violations[:min(len(r.Violations), shown)] {
		p.Verdict = "broken"
		one := breach{Kind: v.Kind, Job: v.Job, At: results.At(v.At), Message: v.Message}
		if v.Key != (limits.Key{}) || v.Kind == Concurrency {
			one.Key = &v.Key
		}
		p.Violations = append(p.Violations, one)
	}
	text, _ := json.MarshalIndent(p, "", "  ") // nothing in it can fail
	return string(text) + "\n"
}
