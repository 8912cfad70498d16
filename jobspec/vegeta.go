package jobspec

import (
	"bytes"
	"regexp"
	"strings"
)

// requestLine matches what a target of vegeta's plain form begins with: a method and a
// URL.
var requestLine = regexp.MustCompile(`^([A-Z]+)[ \t]+(\S+://.*)$`)

// targets are a line each in the form of JSON, or else a request line with the lines
// behind it, up to a blank one or the next request line. Blank lines and comments
// between targets are records of their own.
var targets = form{targetEnd, blankTarget, '\n'}

func targetEnd(data []byte, _ int, _, all bool) (size int, _ bool) {
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 && !all {
			break // more is needed to know
		}
		if end == 0 {
			end = len(data) - at
		}
		line := bytes.TrimSpace(bytes.TrimPrefix(data[at:at+end], byteMark))
		switch alone := len(line) == 0 || line[0] == '#' || line[0] == '{'; {
		case at == 0 && alone:
			return end, false
		case at > 0 && (len(line) == 0 || line[0] == '{' || requestLine.Match(line)):
			return at, false
		}
		at += end
	}
	return 0, false
}

// blankTarget reports whether a record is none: a blank line or a comment.
func blankTarget(record []byte) bool {
	record = bytes.TrimSpace(record)
	return len(record) == 0 || record[0] == '#'
}

// target makes a job of a target of vegeta, in either form.
func (s *source) target(p *jsonParser, data []byte, number int32) (*node, error) {
	if trimmed := bytes.TrimSpace(data); trimmed[0] == '{' {
		return s.jsonTarget(p, data, number)
	}
	if err := checkText(p.file, data, number); err != nil {
		return nil, err
	}
	var r request
	var first *node
	for line := range strings.Lines(string(data)) {
		n := &node{file: p.file, at: place{number, 1}}
		number++
		line = strings.TrimSpace(line)
		name, value, isHeader := strings.Cut(line, ":")
		switch {
		case first == nil:
			found := requestLine.FindStringSubmatch(line)
			if found == nil {
				return nil, wrongAt(n, "", "want a method and a URL, such as GET http://example.com/")
			}
			first, r.http = n, []*node{literal(n, "method", found[1]), literal(n, "url", found[2])}
		case strings.HasPrefix(line, "#"):
		case len(r.http) > 2:
			return nil, wrongAt(n, "", "want nothing behind the body but a blank line or the next target")
		case strings.HasPrefix(line, "@"):
			r.http = append(r.http, literal(n, "body_file", strings.TrimSpace(line[1:])))
		case !isHeader || strings.TrimSpace(value) == "":
			return nil, wrongAt(n, "", "want a header, such as Accept: text/plain, or @ and the file of the body")
		default:
			r.headers = addHeader(r.headers, literal(n, strings.TrimSpace(name), strings.TrimSpace(value)))
		}
	}
	return s.jobOf(first, r), nil
}

// addHeader adds a header; one that is there already gets a further line.
func addHeader(headers []*node, h *node) []*node {
	for i, have := range headers {
		if strings.EqualFold(have.key, h.key) {
			all := &node{kind: list, key: have.key, file: have.file, at: have.at, keyAt: have.keyAt}
			all.kids = append(append(all.kids, have.several()...), h)
			headers[i] = all
			return headers
		}
	}
	return append(headers, h)
}

// jsonTarget makes a job of an object with method, url, header and body.
func (s *source) jsonTarget(p *jsonParser, data []byte, number int32) (*node, error) {
	n, err := p.parse(data, number)
	if err != nil {
		return nil, err
	}
	var r request
	for _, kid := range n.kids {
		switch text := kid.kind == quoted; {
		case (kid.key == "method" || kid.key == "url") && text:
			r.http = append(r.http, literal(kid, kid.key, kid.text))
		case kid.key == "body" && kid.text == "" && kid.kind <= quoted: // null, or empty
		case kid.key == "body" && text:
			r.http = append(r.http, literal(kid, "body_base64", kid.text))
		case kid.key == "header" && kid.kind == mapping:
			for _, h := range kid.kids {
				for _, value := range h.several() {
					r.headers = addHeader(r.headers, literal(value, h.key, value.text))
				}
			}
		case kid.kind != null:
			return nil, wrongAt(kid, kid.key, "want method, url and body, texts, and header, an object of lists")
		}
	}
	job := s.jobOf(n, r)
	if http := job.get("http"); http.get("method") == nil || http.get("url") == nil {
		return nil, wrongAt(n, "", "want a method and a url")
	}
	return job, nil
}
