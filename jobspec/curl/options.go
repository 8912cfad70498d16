package curl

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// optionNames are the options of curl: behind its letter and a comma, if it has one, the
// long name of each, and = if it takes a value. Without them nobody could tell a value
// from a URL.
//
//go:embed options.txt
var optionNames string

// option is an option of curl.
type option struct {
	name   string
	valued bool
}

// findOption returns the option of a letter or a long name.
func findOption(typed string) (o option, found bool) {
	for word := range strings.FieldsSeq(optionNames) {
		letter, name, lettered := strings.Cut(word, ",")
		if !lettered {
			letter, name = "", word
		}
		name, valued := strings.CutSuffix(name, "=")
		if typed == "-"+letter && lettered || typed == "--"+name {
			return option{name, valued}, true
		}
	}
	return o, false
}

// carried are the options that have a place in a job. Those that do nothing here say
// what holds for jobs anyway.
var carried = map[string]func(r *request, value string){
	"request":        func(r *request, v string) { r.method = v },
	"header":         (*request).header,
	"data":           func(r *request, v string) { r.data("&", v, true) },
	"data-ascii":     func(r *request, v string) { r.data("&", v, true) },
	"data-binary":    func(r *request, v string) { r.data("&", v, false) },
	"data-raw":       func(r *request, v string) { r.addData("&", v) },
	"data-urlencode": (*request).dataEncoded,
	"json":           func(r *request, v string) { r.json = true; r.data("", v, false) },
	"form":           (*request).form,
	"form-string":    func(r *request, v string) { r.formText(v) },
	"get":            func(r *request, _ string) { r.get = true },
	"head":           func(r *request, _ string) { r.head = true },
	"upload-file":    func(r *request, v string) { r.upload = v; r.leave("%s: Expect: 100-continue", r.typed) },
	"user":           func(r *request, v string) { r.user = v },
	"oauth2-bearer":  func(r *request, v string) { r.bearer = v },
	"user-agent":     (*request).userAgent,
	"referer":        (*request).referrer,
	"cookie":         (*request).cookie,
	"range":          func(r *request, v string) { r.preset("Range", "bytes="+v) },
	"proxy":          (*request).throughProxy,
	"insecure":       func(r *request, _ string) { r.setTLS("insecure", "true") },
	"cacert":         func(r *request, v string) { r.tlsFile("ca_file", v) },
	"cert":           func(r *request, v string) { r.tlsFile("cert_file", v) },
	"key":            func(r *request, v string) { r.tlsFile("key_file", v) },
	"location":       func(r *request, _ string) { r.follow = true },
	"max-redirs":     func(r *request, v string) { r.redirects = v },
	"max-time":       func(r *request, v string) { r.timeout = v + "s" },
	"url":            (*request).url,
	"url-query":      (*request).urlQuery,
	"globoff":        func(r *request, _ string) { r.globoff = true },
	"path-as-is":     func(r *request, _ string) { r.asIs = true },
	"output":         (*request).output,
	"fail":           func(*request, string) {},
	"http1.1":        func(*request, string) {},
	"basic":          func(*request, string) {},
	"anyauth":        (*request).otherScheme,
	"digest":         (*request).otherScheme,
	"negotiate":      (*request).otherScheme,
	"ntlm":           (*request).otherScheme,
}

// read returns what a command asks for: several requests with --next.
func read(c command) (all []*request) {
	r := newRequest(c)
	words, options := c.words, true
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case !options || len(word) < 2 || word[0] != '-':
			r.url(word)
		case word == "--":
			options = false
		case word == "--next" || word == "-:":
			all = append(all, r)
			r = newRequest(c)
		case strings.HasPrefix(word, "--"):
			o, found := findOption(word)
			words = r.take(word, o, found, words)
		default:
			words = r.cluster(word[1:], words)
		}
	}
	return append(all, r)
}

// cluster takes up options of one letter that stand together. The last of them may have
// its value behind it.
func (r *request) cluster(typed string, words []string) []string {
	for i := range len(typed) {
		letter := "-" + typed[i:i+1]
		o, found := findOption(letter)
		if rest := typed[i+1:]; rest != "" && o.valued {
			return r.take(letter, o, found, append([]string{rest}, words...))
		}
		words = r.take(letter, o, found, words)
	}
	return words
}

// take takes up an option, and its value from the words behind it, which it returns the
// rest of.
func (r *request) take(typed string, o option, found bool, words []string) []string {
	value, do := "", carried[o.name]
	if o.valued {
		if len(words) == 0 {
			r.broken = fmt.Errorf("%s is without a value", typed)
			return nil
		}
		value, words = words[0], words[1:]
	}
	ofBody := slices.ContainsFunc([]string{"data", "json", "form"}, func(s string) bool { return strings.HasPrefix(o.name, s) })
	r.typed, r.marked = typed, r.marked || ofBody && strings.Contains(value, mark)
	switch {
	case !found:
		typed, _, _ = strings.Cut(typed, "=") // curl has no --option=value, and this may be a secret
		r.broken = fmt.Errorf("%s is unknown", typed)
	case do == nil:
		r.leave("%s", typed)
	case !ofBody && !utf8.ValidString(value):
		r.broken = fmt.Errorf("%s: a value that is not UTF-8", typed)
	default:
		do(r, value)
	}
	return words
}
