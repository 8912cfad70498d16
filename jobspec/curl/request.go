package curl

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// request is what options say of one request, or of the same to several URLs.
type request struct {
	command
	path   func(string) string
	typed  string // the option that is being taken up
	left   []Note
	broken error // why no job can be made of it

	job           job // what options set as it is
	method        string
	urls, outputs []string
	headers       http.Header // typed ones; an empty value removes what would be sent
	presets       http.Header // what curl itself or other options would send; typed ones win
	sends         bool        // data: text, or a file as it is
	text, file    string
	parts         []part // of a form
	upload        string

	get, head, globoff bool
}

// maxFile bounds a file whose content gets into the job file, in bytes.
const maxFile = 8 << 20

func newRequest(c command, path func(string) string) *request {
	return &request{command: c, path: path, presets: http.Header{"Accept": {"*/*"}}, headers: make(http.Header)}
}

// leave names what is not carried over.
func (r *request) leave(format string, args ...any) {
	r.left = append(r.left, Note{r.line, fmt.Sprintf(format, args...)})
}

func (r *request) header(line string) {
	name, value, found := strings.Cut(line, ":")
	value = strings.TrimLeft(value, " \t")
	empty, ends := strings.CutSuffix(line, ";")
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(line, "@"):
		r.leave("-H @FILE")
	case !found && ends:
		r.leave("-H %q: a header without a value", empty)
	case !found:
		r.leave("-H without a colon")
	case lower == "content-length", lower == "transfer-encoding", lower == "trailer", lower == "host" && value == "":
		r.leave("-H %q: it is set by itself", name)
	case lower == "user-agent" && value == "":
		r.leave("-H %q: jobs name agentlimit", name)
	default:
		r.headers.Add(name, value)
	}
}

// refuse is for options without which it would be another request.
func (r *request) refuse(string) { r.broken = fmt.Errorf("%s has no place in a job", r.typed) }

// content returns what a file holds, or standard input.
func (r *request) content(name string) string {
	if name == "-" && r.stdin != nil {
		return *r.stdin
	}
	var data []byte
	info, err := os.Stat(name)
	switch {
	case name == "-":
		err = errors.New("standard input")
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%q is no regular file", name)
	case info.Size() > maxFile:
		err = fmt.Errorf("over %d MiB", maxFile>>20)
	default:
		data, err = os.ReadFile(name)
	}
	if strings.Contains(string(data), mark) {
		err = errMark
	}
	if err != nil {
		r.broken = fmt.Errorf("%s: %w", r.typed, err)
	}
	return string(data)
}

// data adds what is typed, or what the file behind an @ holds, if told so without its
// line breaks. A file that is all there is is not read.
func (r *request) data(between, value string, strip bool) {
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case !isFile:
		r.addData(between, value)
	case strip:
		r.addData(between, strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(r.content(name)))
	case r.sends || name == "-":
		r.addData(between, r.content(name))
	default:
		r.sends, r.file = true, name
	}
}

func (r *request) addData(between, text string) {
	if r.file != "" {
		r.text, r.file = r.content(r.file), ""
	}
	if r.sends {
		text = r.text + between + text
	}
	r.sends, r.text = true, text
}

// dataEncoded adds data in curl's form for it: text, =text, name=text, @file or
// name@file, of which the text is percent-encoded.
func (r *request) dataEncoded(v string) {
	name, text := "", v
	if at := strings.IndexAny(v, "=@"); at >= 0 {
		name, text = v[:at], v[at+1:]
		if v[at] == '@' {
			text = r.content(text)
		}
	}
	if strings.Contains(text, mark) {
		r.broken = fmt.Errorf("%s: a variable that would have to be encoded", r.typed)
	}
	if name != "" {
		name += "="
	}
	r.addData("&", name+url.QueryEscape(text))
}

func (r *request) json(v string) {
	r.presets.Set("Content-Type", "application/json")
	r.presets.Set("Accept", "application/json")
	r.data("", v, false)
}

// put has a file be sent.
func (r *request) put(file string) {
	switch {
	case file == "-" || file == ".":
		r.broken = fmt.Errorf("%s: standard input", r.typed)
	case r.upload != "":
		r.broken = fmt.Errorf("%s twice", r.typed)
	}
	r.upload = file
	r.leave("%s: Expect: 100-continue", r.typed)
}

func (r *request) userAgent(v string) {
	if r.presets.Set("User-Agent", v); v == "" {
		r.leave("%s '': jobs name agentlimit", r.typed)
	}
}

func (r *request) referrer(v string) {
	v, auto := strings.CutSuffix(v, ";auto")
	if auto {
		r.leave("%s …;auto", r.typed)
	}
	r.presets.Set("Referer", v)
}

func (r *request) cookie(v string) {
	if !strings.Contains(v, "=") && !strings.Contains(v, mark) {
		r.leave("%s FILE", r.typed)
		return
	}
	r.presets.Set("Cookie", strings.TrimPrefix(r.presets.Get("Cookie")+";"+v, ";"))
}

func (r *request) user(v string) {
	if strings.HasPrefix(r.presets.Get("Authorization"), "Bearer ") {
		return // which wins with curl, too
	}
	if !strings.Contains(v, ":") || strings.Contains(v, mark) {
		r.presets.Del("Authorization") // of an earlier one
		r.leave("-u: a password that curl asks for, or a variable")
		return
	}
	r.presets.Set("Authorization", basic(v))
}

func basic(user string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(user)) }

func (r *request) output(name string) {
	if name == "/dev/null" || name == "-" {
		r.leave("%s %s", r.typed, name)
		name = ""
	}
	r.outputs = append(r.outputs, name)
}
