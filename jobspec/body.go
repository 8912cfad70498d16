package jobspec

import (
	"bytes"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
)

// bodyOf reads the one of body, json, form and body_file that is there.
func (d *decoder) bodyOf(h *HTTP, n *node) {
	switch n.key {
	case "body":
		h.Body = []byte(d.text("http", n))
	case "body_file":
		h.BodyFile = d.filePath("http", n)
	case "json":
		d.body = twin{d.body.value[:0], d.body.named[:0]}
		d.json(&d.body, n)
		d.hash("http", n.key, string(d.body.named))
		h.Body, h.ContentType = bytes.Clone(d.body.value), "application/json"
	case "form":
		h.Body, h.ContentType = d.form(n), "application/x-www-form-urlencoded"
	}
}

// form encodes a form; its fields keep their order, and a list gives one name
// several values.
func (d *decoder) form(n *node) []byte {
	body := []byte{}
	add := func(key string, value *node) {
		if len(body) > 0 {
			body = append(body, '&')
		}
		body = append(body, url.QueryEscape(key)+"="+url.QueryEscape(d.insert("form", key, value, d.strOrEmpty(value)))...)
	}
	d.pairs(n, nil, equal, func(field *node) {
		if field.kind != list {
			add(field.key, field)
			return
		}
		for _, item := range field.kids {
			add(field.key, item)
		}
	})
	return body
}

// twin is JSON that is written twice: as it is sent, and as it is hashed.
type twin struct{ value, named []byte }

func (t *twin) add(s string) {
	t.value = append(t.value, s...)
	t.named = append(t.named, s...)
}

func (t *twin) quote(value, named string) {
	t.value, _ = jsontext.AppendQuote(t.value, value)
	t.named, _ = jsontext.AppendQuote(t.named, named)
}

// json writes n as compact JSON: keys in their order, numbers with their digits.
// A plain scalar is null, true, false or a number only if RFC 8259 spells it so.
func (d *decoder) json(t *twin, n *node) {
	switch {
	case n.kind == list:
		t.add("[")
		for i, kid := range n.kids {
			if i > 0 {
				t.add(",")
			}
			d.json(t, kid)
		}
		t.add("]")
	case n.kind == mapping:
		t.add("{")
		for i, kid := range n.kids {
			if i > 0 {
				t.add(",")
			}
			t.quote(kid.key, kid.key)
			t.add(":")
			d.json(t, kid)
		}
		t.add("}")
	case n.kind == null && n.text == "":
		d.fail(n, `no value: want null or ""`)
	case n.kind != quoted && (n.text == "null" || n.text == "true" || n.text == "false" || isJSONNumber(n.text)):
		t.add(n.text)
	default:
		value, named := d.expand(n, n.text, openRefs|secretRefs|jobRefs)
		t.quote(value, named)
	}
}

// isJSONNumber reports whether s is a number as RFC 8259, section 6 spells it.
func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && jsontext.Value(s).IsValid()
}
