package curl

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// request is what options say of one request, or of the same to several URLs.
type request struct {
	line   int
	stdin  *string
	typed  string // the option that is being taken up
	left   []Note
	broken error // why no job can be made of it

	urls, outputs []string
	method        string
	headers       []header // typed ones, and those that remove what would be sent
	presets       []header // of other options; typed ones win
	body          []string // joined; nil: none
	bodyFile      string   // all of the body, if it is one file as it is
	parts         []part   // of a form
	upload        string
	marked        bool // a variable is in the body
	bytes         bool // what looks like a variable is in a file of the body
	scheme        bool // of authentication, another than Basic
	user, bearer  string
	agent         string
	cookies       []string
	query         []string
	proxy         string
	tls           []string
	timeout       string
	redirects     string

	json, get, head, follow, globoff, asIs bool
}

// header is a header line. One without a value removes what would be sent.
type header struct{ name, value string }

// maxFile bounds a file whose content gets into the job file, in bytes.
const maxFile = 8 << 20

func newRequest(c command) *request { return &request{line: c.line, stdin: c.stdin} }

// leave names what is not carried over.
func (r *request) leave(format string, args ...any) {
	r.left = append(r.left, Note{r.line, fmt.Sprintf(format, args...)})
}

// preset sets a header that typed ones replace.
func (r *request) preset(name, value string) {
	if value != "" {
		r.presets = append(r.presets, header{name, value})
	}
}

func (r *request) header(line string) {
	if strings.HasPrefix(line, "@") {
		r.leave("-H @FILE")
		return
	}
	name, value, found := strings.Cut(line, ":")
	value = strings.TrimLeft(value, " \t")
	if empty, ends := strings.CutSuffix(line, ";"); !found && ends {
		r.leave("-H %q: a header without a value", empty)
		return
	}
	switch strings.ToLower(name) {
	case "content-length", "transfer-encoding":
		r.leave("-H %q: it is set by itself", name)
		return
	case "user-agent":
		if value == "" {
			r.leave("-H %q: jobs name agentlimit", name)
			return
		}
	}
	if !found {
		r.leave("-H without a colon")
		return
	}
	r.headers = append(r.headers, header{name, value})
}

// content returns what a file holds, or standard input.
func (r *request) content(name string) (string, bool) {
	if name == "-" && r.stdin != nil {
		r.marked = r.marked || strings.Contains(*r.stdin, mark)
		return *r.stdin, true
	}
	info, err := os.Stat(name)
	switch {
	case name == "-":
		r.broken = fmt.Errorf("%s: standard input", r.typed)
		return "", false
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%q is no regular file", name)
	case err == nil && info.Size() > maxFile:
		err = fmt.Errorf("over %d MiB", maxFile>>20)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		r.broken = fmt.Errorf("%s: %w", r.typed, err)
	}
	r.bytes = r.bytes || strings.Contains(string(data), mark)
	return string(data), err == nil
}

// data adds to the body what is typed, or what the file behind an @ holds, if told so
// without its line breaks. A file that is all of the body is not read.
func (r *request) data(between, value string, strip bool) {
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case !isFile:
		r.addData(between, value)
	case !strip && r.body == nil && name != "-":
		r.body, r.bodyFile = []string{}, name
	default:
		text, _ := r.content(name)
		if strip {
			text = strings.NewReplacer("\r", "", "\n", "").Replace(text)
		}
		if strip && name != "-" {
			text = strings.ReplaceAll(text, "\x00", "")
		}
		r.addData(between, text)
	}
}

func (r *request) addData(between, text string) {
	if r.body != nil {
		r.body = append(r.body, r.whole(), between)
	}
	r.body, r.bodyFile = append(r.body, text), ""
}

// whole returns what a file that is all of the body holds; empty if there is none.
func (r *request) whole() (text string) {
	if r.bodyFile != "" {
		text, _ = r.content(r.bodyFile)
	}
	return text
}

// encoded is curl's own form of data for --data-urlencode and --url-query: text, =text,
// name=text, @file or name@file, of which the text is percent-encoded.
func (r *request) encoded(v string) string {
	at := strings.IndexAny(v, "=@")
	name, text := "", v
	if at >= 0 {
		name, text = v[:at], v[at+1:]
	}
	if at >= 0 && v[at] == '@' {
		text, _ = r.content(text)
	}
	if strings.Contains(text, mark) {
		r.broken = fmt.Errorf("%s: a variable that would have to be encoded", r.typed)
	}
	text = url.QueryEscape(text)
	if name != "" {
		text = name + "=" + text
	}
	return text
}

func (r *request) dataEncoded(v string) { r.addData("&", r.encoded(v)) }

func (r *request) urlQuery(v string) {
	if plain, found := strings.CutPrefix(v, "+"); found {
		r.query = append(r.query, plain)
		return
	}
	r.query = append(r.query, r.encoded(v))
}

func (r *request) referrer(v string) {
	v, auto := strings.CutSuffix(v, ";auto")
	if auto {
		r.leave("%s …;auto", r.typed)
	}
	r.preset("Referer", v)
}

func (r *request) cookie(v string) {
	if !strings.Contains(v, "=") && !strings.Contains(v, mark) {
		r.leave("%s FILE", r.typed)
		return
	}
	r.cookies = append(r.cookies, v)
}

// setTLS sets what is said of the connection, of a file behind a mark.
func (r *request) setTLS(key, value string) {
	r.tls = append(slices.DeleteFunc(r.tls, func(line string) bool { return strings.HasPrefix(line, key+":") }), key+": "+value)
}

func (r *request) tlsFile(key, name string) {
	if at := strings.LastIndex(name, ":"); key == "cert_file" && at > len(filepath.VolumeName(name)) {
		r.leave("%s: the password", r.typed)
		name = name[:at]
	}
	r.setTLS(key, mark+name)
}

// otherScheme names a way to authenticate that jobs have not. The user is not sent.
func (r *request) otherScheme(string) {
	r.scheme = true
	r.leave("%s, and its user", r.typed)
}

func (r *request) userAgent(v string) {
	if r.agent = v; v == "" {
		r.leave("%s '': jobs name agentlimit", r.typed)
	}
}

func (r *request) output(name string) {
	if name == "/dev/null" || name == "-" {
		r.leave("%s %s", r.typed, name)
		name = ""
	}
	r.outputs = append(r.outputs, name)
}

func (r *request) url(typed string) {
	if r.urls = append(r.urls, typed); !utf8.ValidString(typed) {
		r.broken = errors.New("a URL that is not UTF-8")
	}
}

func (r *request) throughProxy(v string) {
	if strings.Contains(v, "@") {
		r.leave("%s: the user of the proxy", r.typed)
	}
	scheme, rest, found := strings.Cut(v, "://")
	if !found {
		scheme, rest = "http", v
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = rest[at+1:]
	}
	r.proxy = scheme + "://" + rest
}
