package curl

import (
	_ "embed"
	"fmt"
	"strings"
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

// carried are the options that have a place in a job, and those without which it would be
// another request. Those that do nothing here say what holds for jobs anyway.
var carried = map[string]func(r *request, value string){
	"request":        func(r *request, v string) { r.method = v },
	"header":         (*request).header,
	"data":           func(r *request, v string) { r.data("&", v, true) },
	"data-ascii":     func(r *request, v string) { r.data("&", v, true) },
	"data-binary":    func(r *request, v string) { r.data("&", v, false) },
	"data-raw":       func(r *request, v string) { r.addData("&", v) },
	"data-urlencode": (*request).dataEncoded,
	"json":           (*request).json,
	"form":           (*request).form,
	"form-string":    (*request).formText,
	"get":            func(r *request, _ string) { r.get = true },
	"head":           func(r *request, _ string) { r.head = true },
	"upload-file":    (*request).put,
	"user":           (*request).user,
	"oauth2-bearer":  func(r *request, v string) { r.presets.Set("Authorization", "Bearer "+v) },
	"user-agent":     (*request).userAgent,
	"referer":        (*request).referrer,
	"cookie":         (*request).cookie,
	"range":          func(r *request, v string) { r.presets.Set("Range", "bytes="+v) },
	"insecure":       func(r *request, _ string) { r.job.HTTP.TLS.Insecure = true },
	"location":       func(r *request, _ string) { r.job.HTTP.Redirects = 50 },
	"max-time":       func(r *request, v string) { r.job.Timeout = text(v + "s") },
	"url":            func(r *request, v string) { r.urls = append(r.urls, v) },
	"globoff":        func(r *request, _ string) { r.globoff = true },
	"output":         (*request).output,
	"proxy":          (*request).via,
	"fail":           func(*request, string) {},
	"http1.1":        func(*request, string) {},
	"basic":          func(*request, string) {},
	"path-as-is":     (*request).refuse,
	"url-query":      (*request).refuse,
	"anyauth":        (*request).refuse,
	"digest":         (*request).refuse,
	"aws-sigv4":      (*request).refuse,
	"negotiate":      (*request).refuse,
	"ntlm":           (*request).refuse,
}

// read returns what a command asks for: several requests with --next.
func read(c command, path func(string) string) (all []*request) {
	r := newRequest(c, path)
	words, options := c.words, true
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case !options || len(word) < 2 || word[0] != '-':
			r.urls = append(r.urls, word)
		case word == "--":
			options = false
		case word == "--next" || word == "-:":
			all = append(all, r)
			r = newRequest(c, path)
		case strings.HasPrefix(word, "--"):
			words = r.take(word, "", words)
		default: // letters that stand together; the last may have its value behind it
			for rest := word[1:]; rest != ""; {
				letter := rest[:1]
				if o, _ := findOption("-" + letter); o.valued {
					words = r.take("-"+letter, rest[1:], words)
					break
				}
				words, rest = r.take("-"+letter, "", words), rest[1:]
			}
		}
	}
	return append(all, r)
}

// take takes up an option, and its value, if that is not behind it, from the words,
// which it returns the rest of.
func (r *request) take(typed, value string, words []string) []string {
	o, found := findOption(typed)
	if o.valued && value == "" {
		if len(words) == 0 {
			r.broken = fmt.Errorf("%s is without a value", typed)
			return nil
		}
		value, words = words[0], words[1:]
	}
	r.typed = typed
	if do := carried[o.name]; do != nil {
		do(r, value)
	} else if found {
		r.leave("%s", typed)
	} else {
		typed, _, _ = strings.Cut(typed, "=") // curl has no --option=value, and this may be a secret
		r.broken = fmt.Errorf("%s is unknown", typed)
	}
	return words
}
