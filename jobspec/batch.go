package jobspec

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// batchInline is how much of each answer to a batch is kept, if nobody says: all that
// comes, so that results can be turned back.
const batchInline = "8MiB"

// outputLimits are the fields of a body that say with how many tokens may be answered,
// outputTimes those that say how often.
var (
	outputLimits = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}
	outputTimes  = []string{"n", "best_of"}
)

// batchLine makes a job of a line of a batch: an object with custom_id, method, url, a
// path, and body, an object that is sent byte for byte.
func (s *source) batchLine(p *jsonParser, line []byte, number int32) (*node, error) {
	p.flat = true
	n, err := p.parse(line, number)
	if err != nil {
		return nil, err
	}
	if n.kind != mapping {
		return nil, wrongAt(n, "", "want an object with custom_id, method, url and body")
	}
	known := []string{"custom_id", "method", "url", "body"}
	for _, kid := range n.kids {
		if !slices.Contains(known, kid.key) && kid.key != s.Requests.CostField {
			return nil, wrongAt(kid, kid.key, "unknown key"+didYouMean(kid.key, known))
		}
	}
	for _, key := range known[:3] {
		if kid := n.get(key); kid == nil || kid.kind != quoted || kid.text == "" {
			return nil, wrongAt(cmp.Or(kid, n), key, "want a text")
		}
	}
	id, path, body := n.get("custom_id"), n.get("url"), n.get("body")
	switch {
	case path.text[0] != '/':
		return nil, wrongAt(path, "url", "want a path, such as /v1/chat/completions, which the base URL is put in front of")
	case body != nil && body.text[0] != '{' || body != nil && body.kind == quoted:
		return nil, wrongAt(body, "body", "want an object")
	}
	url := &node{kind: quoted, key: "url", text: strings.TrimSuffix(s.Requests.BaseURL, "/") + escape(path.text), file: path.file, at: path.at}
	r := request{job: []*node{literal(id, "id", id.text)}, http: []*node{literal(n.get("method"), "method", n.get("method").text), url}}
	if s.Requests.TokenPool != "" {
		cost, err := s.tokens(n, body)
		if err != nil {
			return nil, err
		}
		r.job = append(r.job, cost)
	}
	if s.d.defaults.get("output").get("inline") == nil {
		r.job = append(r.job, mappingAt(n, "output", literal(n, "inline", batchInline)))
	}
	if body != nil {
		r.http = append(r.http, literal(body, "body", body.text))
		if !slices.ContainsFunc(s.headers, func(h *node) bool { return strings.EqualFold(h.key, "Content-Type") }) {
			r.headers = []*node{literal(body, "Content-Type", "application/json")}
		}
	}
	return s.jobOf(n, r), nil
}

// tokens returns what a request takes from its pool: what a field of the line, or else
// of its body, says; or a quarter of the bytes of all texts in the body, and with how
// many tokens may be answered.
func (s *source) tokens(n, body *node) (*node, error) {
	at, said := n, ""
	text, most := 0, int64(0)
	if field := n.get(s.Requests.CostField); field != nil && s.Requests.CostField != "" {
		at, said = field, field.text
	} else if at = cmp.Or(body, n); body != nil {
		text, most, said = measure(body.text, s.Requests.CostField)
	}
	switch {
	case s.Requests.CostField == "":
		said = strconv.FormatInt(int64((text+3)/4)+most, 10)
	case said == "":
		return nil, wrongAt(at, s.Requests.CostField, "it is missing, and is to say how many tokens the request takes")
	}
	cost := &node{kind: plain, key: s.Requests.TokenPool, text: said, file: at.file, at: at.at, keyAt: at.at}
	return mappingAt(at, "cost", cost), nil
}

// measure returns how many bytes the texts of a body have, names of fields aside, the
// most tokens that it lets be answered, and what one of its own fields says.
func measure(body, field string) (text int, most int64, said string) {
	d := jsontext.NewDecoder(strings.NewReader(body))
	name, times := "", int64(1)
	for {
		t, err := d.ReadToken()
		if err != nil { // the end: it was read before
			return text, most * times, said
		}
		within, count := d.StackIndex(d.StackDepth())
		isName := within == '{' && count%2 == 1 && t.Kind() == '"'
		top := d.StackDepth() == 1
		switch {
		case isName && top:
			name = t.String()
		case isName:
		case t.Kind() == '"':
			text += len(t.String())
		case top && t.Kind() == '0' && slices.Contains(outputLimits, name):
			most = max(most, atLeast(t.String()))
		case top && t.Kind() == '0' && slices.Contains(outputTimes, name):
			times = max(times, atLeast(t.String()))
		}
		if top && !isName && name == field && (t.Kind() == '0' || t.Kind() == '"') {
			said = t.String()
		}
	}
}

// atLeast returns a number of JSON as a whole one that is no lower. More than 2^30 is far
// above any burst.
func atLeast(number string) int64 {
	v, _ := strconv.ParseFloat(number, 64) // out of range: infinite
	return int64(math.Ceil(min(max(v, 0), 1<<30)))
}
