package curl

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agentlimit/jobspec"
)

// request adds the job for URL number i of a request.
func (w *writer) request(r *request, i int) (err error) {
	if r.broken != nil {
		return r.broken
	}
	secrets, public := len(w.Secrets), len(w.public)
	defer func() {
		if err != nil { // nothing refers to what is new
			w.Secrets, w.public = w.Secrets[:secrets], w.public[:public]
		}
	}()
	target, err := r.target(r.urls[i])
	if err != nil {
		return err
	}
	host := w.host(target)
	target = w.hideQuery(target, host)
	var b strings.Builder
	fmt.Fprintf(&b, "\n  # line %d", r.line)
	for n, note := range r.left {
		b.WriteString([]string{"; not carried over: ", ", "}[min(n, 1)] + strings.ReplaceAll(note.Text, "\n", " "))
	}
	fmt.Fprintf(&b, "\n  - http:\n      method: %s\n      url: %s\n", scalar(r.verb()), scalar(target))
	w.headers(&b, r, host)
	if err := w.body(&b, r); err != nil {
		return err
	}
	w.connection(&b, r)
	w.around(&b, r, i)
	if err := check(w.preamble() + "jobs:" + b.String()); err != nil {
		return err
	}
	w.jobs.WriteString(b.String())
	w.Jobs++
	return nil
}

// check reads a job file, so that none is made that is refused: what curl sends need not
// be valid. A variable may be a whole URL or a part of one.
func check(text string) (err error) {
	for _, value := range []string{"http://example.com", "example.com"} {
		var spec *jobspec.Spec
		spec, err = jobspec.Load(jobspec.Options{
			Files: []string{"-"}, Format: "yaml", Stdin: strings.NewReader(text),
			Env: func(string) (string, bool) { return value, true },
		})
		if err == nil {
			spec.Close()
			return nil
		}
	}
	if all, found := errors.AsType[jobspec.Errors](err); found {
		return fmt.Errorf("%s: %s", strings.TrimPrefix(all[0].Path, "jobs[0]."), all[0].Text)
	}
	return err
}

// verb is the method that curl would use.
func (r *request) verb() string {
	switch {
	case r.method != "":
		return r.method
	case r.head:
		return "HEAD"
	case r.upload != "":
		return "PUT"
	case (r.body != nil || len(r.parts) > 0) && !r.get:
		return "POST"
	}
	return "GET"
}

// headers writes what curl would send, but for what names itself.
func (w *writer) headers(b *strings.Builder, r *request, host string) {
	all := []header{{"Accept", "*/*"}}
	set := func(name, value string) {
		all = slices.DeleteFunc(all, func(h header) bool { return strings.EqualFold(h.name, name) })
		if value != "" {
			all = append(all, header{name, value})
		}
	}
	switch sends := r.body != nil && !r.get; {
	case r.json && sends:
		set("Content-Type", "application/json")
		set("Accept", "application/json")
	case sends:
		set("Content-Type", "application/x-www-form-urlencoded")
	}
	set("User-Agent", r.agent)
	set("Cookie", strings.Join(r.cookies, ";"))
	if r.bearer != "" {
		set("Authorization", "Bearer "+r.bearer)
	} else if r.user != "" && !r.scheme {
		if !strings.Contains(r.user, ":") || strings.Contains(r.user, mark) {
			r.leave("-u: a password that curl asks for, or a variable")
		} else {
			set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(r.user)))
		}
	}
	for _, h := range r.presets {
		set(h.name, h.value)
	}
	for _, h := range r.headers {
		set(h.name, "")
	}
	for _, h := range r.headers {
		if h.value != "" {
			all = append(all, h)
		}
	}
	if len(r.parts) > 0 {
		_, kind := multipartBody(r.parts)
		set("Content-Type", kind)
	}
	w.headerLines(b, r, all, host)
}

// headerLines writes a list where a name has several values.
func (w *writer) headerLines(b *strings.Builder, r *request, all []header, host string) {
	b.WriteString("      headers:\n")
	var names []string
	for _, h := range all {
		name := strings.ToLower(h.name)
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		var values []string
		for _, other := range all {
			if strings.EqualFold(other.name, h.name) {
				values = append(values, scalar(w.hide(other, host)))
			}
		}
		value := values[0]
		if len(values) > 1 {
			value = "[" + strings.Join(values, ", ") + "]"
		}
		fmt.Fprintf(b, "        %s: %s\n", scalar(h.name), value)
	}
	if len(all) == 0 {
		b.WriteString("        {}\n")
	}
}

// secretHeader matches the names of headers that identify who calls.
var secretHeader = regexp.MustCompile(`(?i)authorization|^cookie|(api|access|subscription|private)-?key|\bauth\b|token|secret|password|session|credential`)

// hide returns a header's value with a variable for what is secret in it.
func (w *writer) hide(h header, host string) string {
	if !secretHeader.MatchString(h.name) || strings.Contains(h.value, mark) {
		return h.value
	}
	scheme, secret := "", h.value
	if word, rest, found := strings.Cut(h.value, " "); found && strings.HasSuffix(strings.ToLower(h.name), "authorization") {
		scheme, secret = word+" ", rest
	}
	what := "what stands behind " + strings.TrimSpace(h.name+": "+scheme)
	if scheme == "Basic " {
		what = "printf %s USER:PASSWORD | base64 -w0"
	}
	return scheme + mark + w.variable(h.name+"_"+host, secret, what) + mark
}

// variable returns the name of a variable with a value: one that is known already, or
// a new one.
func (w *writer) variable(of, value, what string) string {
	name := strings.Trim(regexp.MustCompile(`[^A-Z0-9]+`).ReplaceAllString(strings.ToUpper(of), "_"), "_")
	for n := 1; ; n++ {
		numbered := name
		if n > 1 {
			numbered += "_" + strconv.Itoa(n)
		}
		at := slices.IndexFunc(w.Secrets, func(s Secret) bool { return s.Name == numbered })
		if at < 0 {
			w.Secrets = append(w.Secrets, Secret{numbered, what, value})
			return numbered
		}
		if w.Secrets[at].value == value {
			return numbered
		}
	}
}

// body writes what is sent, of which curl takes one kind.
func (w *writer) body(b *strings.Builder, r *request) error {
	text, file, kinds := strings.Join(r.body, ""), r.bodyFile, 0
	for _, there := range []bool{len(r.parts) > 0, r.upload != "", r.body != nil && !r.get, r.head} {
		if there {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return errors.New("-d, -F, -T and -I contradict each other")
	case len(r.parts) > 0:
		text, _ = multipartBody(r.parts)
	case r.upload == "-" || r.upload == ".":
		r.typed = "-T"
		text, _ = r.content("-")
	case r.upload != "":
		file = r.upload
	case r.get:
		return nil
	}
	switch {
	case r.broken != nil:
		return r.broken
	case file != "":
		fmt.Fprintf(b, "      body_file: %s\n", scalar(w.pathOf(file)))
	case text == "":
	case r.bytes && r.marked:
		return errors.New("a variable beside bytes that are no text")
	case r.bytes || !utf8.ValidString(text):
		fmt.Fprintf(b, "      body_base64: %s\n", base64.StdEncoding.EncodeToString([]byte(text)))
	default:
		fmt.Fprintf(b, "      body: %s\n", scalar(text))
	}
	return nil
}

// pathOf is path for what may begin with a variable, of which nobody knows more.
func (w *writer) pathOf(name string) string {
	if strings.HasPrefix(name, mark) {
		return name
	}
	return w.path(name)
}

// connection writes what the rest of the http block says.
func (w *writer) connection(b *strings.Builder, r *request) {
	if r.proxy != "" {
		fmt.Fprintf(b, "      proxy: %s\n", scalar(r.proxy))
	}
	for i, line := range r.tls {
		if key, name, isFile := strings.Cut(line, mark); isFile {
			line = key + scalar(w.pathOf(name))
		}
		fmt.Fprintf(b, "%s        %s\n", []string{"      tls:\n", ""}[min(i, 1)], line)
	}
	if r.follow {
		fmt.Fprintf(b, "      follow_redirects: %s  # on the same host only\n", scalar(cmp.Or(r.redirects, "50")))
	}
}

// around writes what is beside the http block.
func (w *writer) around(b *strings.Builder, r *request, i int) {
	if r.timeout != "" {
		fmt.Fprintf(b, "    timeout: %s\n", scalar(r.timeout))
	}
	if i >= len(r.outputs) || r.outputs[i] == "" {
		return
	}
	if name := filepath.Clean(r.outputs[i]); slices.Contains(w.saved, name) {
		r.leave("-o: a file that another job has")
	} else {
		w.saved = append(w.saved, name)
		fmt.Fprintf(b, "    output: {save: %s}  # if it succeeds\n", scalar(w.pathOf(r.outputs[i])))
	}
}

var (
	plain    = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9/._~%=&?+-]*(://[A-Za-z0-9/._~%=&?+:-]*)?$`)
	readable = regexp.MustCompile(`^[ -~\x{a1}-\x{d7ff}\x{f900}-\x{fdff}\x{10000}-\x{1ffff}]*$`)
	not      = regexp.MustCompile("[\x7f-\u009f\u2028\u2029\ufeff\ufffe\uffff]")
)

// scalar spells a text in YAML, with references for variables. A text that looks like
// something else stays one, since job files keep what is typed.
func scalar(s string) string {
	s = strings.ReplaceAll(s, "${", "$${")
	s = variable.ReplaceAllString(s, "$${env:$1}")
	switch {
	case plain.MatchString(s) && !strings.EqualFold(s, "null") && !strings.HasSuffix(s, ":"):
		return s
	case readable.MatchString(s) && !not.MatchString(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	quoted, _ := jsontext.AppendQuote(nil, s)
	return not.ReplaceAllStringFunc(string(quoted), func(c string) string { return fmt.Sprintf(`\u%04x`, []rune(c)[0]) })
}
