package curl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"path/filepath"
	"strings"
)

// part is a part of a form.
type part struct {
	disposition, kind, text string
}

// kinds are what curl takes files for, by their endings.
var kinds = map[string]string{
	".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
	".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf", ".xml": "application/xml",
}

// formText adds a field as it is typed.
func (r *request) formText(v string) {
	name, text, _ := strings.Cut(v, "=")
	r.parts = append(r.parts, part{disposition: disposition(name, ""), text: text})
}

// form adds a field: a text, the text in a file behind <, or a file behind @. Behind it
// may stand its type and its name.
func (r *request) form(v string) {
	name, text, found := strings.Cut(v, "=")
	if !found || strings.HasPrefix(text, "(") || text == ")" {
		r.broken = fmt.Errorf("%s: parts of parts", r.typed)
		return
	}
	text, fields := pieces(text)
	var p part
	filename := ""
	switch file := strings.TrimLeft(text, "@<"); {
	case strings.HasPrefix(text, "@"):
		filename, p.kind = filepath.Base(file), kinds[strings.ToLower(filepath.Ext(file))]
		p.kind = cmp.Or(p.kind, "application/octet-stream")
		text, _ = r.content(file)
	case strings.HasPrefix(text, "<"):
		text, _ = r.content(file)
	}
	for i, field := range fields {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		value, _ = pieces(value)
		switch {
		case key == "type":
			p.kind = value
		case key == "filename":
			filename = value
		case i > 0 && strings.HasPrefix(strings.TrimSpace(fields[i-1]), "type="):
			p.kind += ";" + field // such as charset
		default:
			r.leave("%s …;%q", r.typed, key)
		}
	}
	p.disposition, p.text = disposition(name, filename), text
	r.parts = append(r.parts, p)
}

// pieces splits the content of a field, which may be in quotes, from what is said of it
// behind semicolons.
func pieces(s string) (text string, fields []string) {
	if !strings.HasPrefix(strings.TrimLeft(s, "@<"), `"`) {
		all := strings.Split(s, ";")
		return all[0], all[1:]
	}
	lead, s, _ := strings.Cut(s, `"`)
	var b strings.Builder
	for s != "" && s[0] != '"' {
		if s[0] == '\\' && len(s) > 1 && (s[1] == '"' || s[1] == '\\') {
			s = s[1:]
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	_, rest, more := strings.Cut(s, ";")
	if more {
		fields = strings.Split(rest, ";")
	}
	return lead + b.String(), fields
}

func disposition(name, filename string) string {
	escape := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")
	d := `form-data; name="` + escape.Replace(name) + `"`
	if filename != "" {
		d += `; filename="` + escape.Replace(filename) + `"`
	}
	return d
}

// multipartBody returns a body of parts, and its type. What stands between the parts is of
// their hash, so that the same line makes the same job.
func multipartBody(parts []part) (body, kind string) {
	sum := sha256.Sum256(fmt.Append(nil, parts))
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.SetBoundary(fmt.Sprintf("------------------------%x", sum[:8])) // which is a valid one
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {p.disposition}}
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		out, _ := w.CreatePart(h) // to memory
		out.Write([]byte(p.text))
	}
	w.Close()
	return b.String(), "multipart/form-data; boundary=" + w.Boundary()
}
