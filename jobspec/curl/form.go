package curl

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// part is a part of a form.
type part struct{ name, filename, kind, text string }

// kinds are what curl takes files for, by their endings.
var kinds = map[string]string{
	".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
	".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf", ".xml": "application/xml",
}

func kindOf(file string) string { return kinds[strings.ToLower(filepath.Ext(file))] }

// field matches a field of a form: its name; @ in front of a file, or < in front of one
// whose content is the text; and its type, in front of or behind which is the name that is
// said of the file. Blanks around a value are none of it, unless it is in quotes.
var field = regexp.MustCompile(`(?s)^([^=]+)=([@<]?)\s*(` + inQuotes + `\s*|[^\s;"(@<][^;]*|)` + named + `(?:; *type=([^\s;"/]+/[^\s;"]+(?:; *charset=[^\s;"]+)?))?` + named + `$`)

const (
	named    = `(?:; *filename=([^\s;"]|[^\s;"][^;"]*[^\s;"]|` + inQuotes + `))?`
	inQuotes = `"(?:[^"\\]|\\.)*"`
)

// form adds a field.
func (r *request) form(v string) {
	found := field.FindStringSubmatch(v)
	if found == nil || found[2] == "@" && !strings.HasPrefix(found[3], `"`) && strings.Contains(found[3], ",") {
		r.broken = fmt.Errorf("%s: want a text or one file, and its type and filename at most", r.typed)
		return
	}
	p := part{name: found[1], text: bare(found[3]), kind: found[5]}
	file := p.text
	if found[2] != "" {
		p.text = r.content(file)
	}
	if found[2] != "<" {
		p.filename = bare(cmp.Or(found[6], found[4]))
	}
	if found[2] == "@" {
		p.filename = cmp.Or(p.filename, filepath.Base(file))
	}
	if p.kind = cmp.Or(p.kind, kindOf(p.filename)); found[2] == "@" {
		p.kind = cmp.Or(p.kind, kindOf(file), "application/octet-stream")
	}
	r.parts = append(r.parts, p)
}

// formText adds a field of a text in which nothing means anything.
func (r *request) formText(v string) {
	name, text, _ := strings.Cut(v, "=")
	if name == "" || len(name) == len(v) {
		r.broken = fmt.Errorf("%s: want a name and a text", r.typed)
		return
	}
	r.parts = append(r.parts, part{name: name, text: text})
}

// bare returns a value without its quotes, or without the blanks behind it.
func bare(v string) string {
	v = strings.TrimRight(v, " \t\n\v\f\r")
	if !strings.HasPrefix(v, `"`) {
		return v
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1])
}

// multipart returns a body of parts, and its type. What stands between the parts is of
// their hash, so that the same line makes the same job.
func multipart(parts []part) (body, kind string) {
	sum := sha256.Sum256(fmt.Append(nil, parts))
	boundary := fmt.Sprintf("------------------------%x", sum[:8])
	escape := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", boundary, escape.Replace(p.name))
		if p.filename != "" {
			fmt.Fprintf(&b, "; filename=\"%s\"", escape.Replace(p.filename))
		}
		if p.kind != "" {
			fmt.Fprintf(&b, "\r\nContent-Type: %s", p.kind)
		}
		fmt.Fprintf(&b, "\r\n\r\n%s\r\n", p.text)
	}
	return b.String() + "--" + boundary + "--\r\n", "multipart/form-data; boundary=" + boundary
}
