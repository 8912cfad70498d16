package audit

import "encoding/json"

// shown is how many violations are told of as JSON.
const shown = 100

// JSON returns the report as one object, with the first of its violations.
func (r *Report) JSON() string {
	p := struct {
		V       int    `json:"v"`       // of the format: 1
		Verdict string `json:"verdict"` // "kept", or "broken"
		Report
		Broken     int         `json:"broken"`     // how many violations there are
		Violations []Violation `json:"violations"` // the first of them
	}{1, "kept", *r, len(r.Violations), append([]Violation{}, r.Violations[:min(len(r.Violations), shown)]...)}
	if p.Broken > 0 {
		p.Verdict = "broken"
	}
	p.Keys = append([]KeyReport{}, r.Keys...)  // in JSON no list is null
	text, _ := json.MarshalIndent(p, "", "  ") // nothing in it can fail
	return string(text) + "\n"
}
