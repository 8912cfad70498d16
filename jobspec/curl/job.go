package curl

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"agentlimit/jobspec"
)

// job is a job as the file has it. What is empty is left out.
type job struct {
	HTTP struct {
		Method    text           `yaml:"method"`
		URL       text           `yaml:"url"`
		Headers   map[string]any `yaml:"headers,omitempty"`
		Body      text           `yaml:"body,omitempty"`
		Bytes     string         `yaml:"body_base64,omitempty"`
		BodyFile  text           `yaml:"body_file,omitempty"`
		Redirects int            `yaml:"follow_redirects,omitempty"`
		Proxy     text           `yaml:"proxy,omitempty"`
		TLS       struct {
			Insecure bool `yaml:"insecure,omitempty"`
		} `yaml:"tls,omitempty"`
	} `yaml:"http"`
	Timeout text `yaml:"timeout,omitempty"`
	Output  struct {
		Save text `yaml:"save,omitempty"`
	} `yaml:"output,omitempty"`
}

// add adds the job for URL number i of a request. On an error w is of no use.
func (w *writer) add(r *request, i int) error {
	if r.broken != nil {
		return r.broken
	}
	if i == 0 && r.emptyBody() {
		r.leave("Content-Length: 0")
	}
	if i == 0 && r.method != "" && r.job.HTTP.Redirects > 0 {
		r.leave("-X with -L: behind a redirect curl keeps the method and has no body; a job does as browsers do")
	}
	comment := fmt.Sprintf("\n  # line %d", r.line)
	if len(r.left) > 0 {
		comment += "; not carried over: " + oneLine(r.leftOut())
	}
	target, user, err := r.target(r.urls[i])
	if err != nil {
		return err
	}
	j, host := r.job, w.host(target)
	j.HTTP.Method, j.HTTP.URL, j.HTTP.Headers = text(r.verb()), text(w.hideQuery(target, host)), w.headers(r.sent(user), host)
	if err := r.body(&j); err != nil {
		return err
	}
	if j.HTTP.Redirects > 0 {
		comment += "; redirects are followed on the same host only"
	}
	if i < len(r.outputs) && r.outputs[i] != "" {
		if name := filepath.Clean(r.outputs[i]); slices.Contains(w.saved, name) {
			r.leave("-o: a file that another job has")
		} else {
			w.saved, j.Output.Save = append(w.saved, name), text(r.path(name))
		}
	}
	w.shellVariables(j)
	made, err := spell(j)
	if err == nil {
		err = w.check(made)
	}
	w.jobs += comment + "\n" + made
	w.Jobs++
	return err
}

// emptyBody reports whether curl says that nothing is sent, which jobs say of some
// methods only.
func (r *request) emptyBody() bool {
	return r.sends && !r.get && r.text == "" && r.file == "" && !slices.Contains([]string{"POST", "PUT", "PATCH"}, r.verb())
}

// leftOut lists what is not carried over, in one line.
func (r *request) leftOut() string {
	var all []string
	for _, note := range r.left {
		all = append(all, strings.ReplaceAll(note.Text, "\n", " "))
	}
	return strings.Join(all, ", ")
}

// spell returns a job in YAML, as an item of a list.
func spell(j job) (string, error) {
	var b strings.Builder
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	err := out.Encode([]job{j})
	return regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(b.String(), "  $1"), err
}

// text is what a job has a text for.
type text string

var dollar = regexp.MustCompile(`\$` + variable.String())

// MarshalYAML returns the text with references for variables. Lines stand in quotes, since
// yaml.v3 loses some of what may be in a block.
func (t text) MarshalYAML() (any, error) {
	if found := dollar.FindStringSubmatch(string(t)); found != nil {
		return nil, fmt.Errorf("a $ in front of $%s", found[1])
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}
	n.Value = variable.ReplaceAllString(strings.ReplaceAll(string(t), "${", "$${"), "$${env:$1}")
	if strings.Contains(n.Value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, nil
}

// check reads a job, so that no file is made that is refused: what curl sends need not be
// valid. A variable may be a whole URL or a part of one; a secret is something else.
func (w *writer) check(job string) (err error) {
	for _, value := range []string{"http://example.com", "example.com"} {
		var spec *jobspec.Spec
		spec, err = jobspec.Load(jobspec.Options{
			Files: []string{"-"}, Format: "yaml", Stdin: strings.NewReader(w.preamble() + "jobs:\n" + job),
			Env: func(name string) (string, bool) {
				if slices.Contains(w.public, name) {
					return value, true
				}
				return "secret-" + name, true
			},
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
	case r.sends && !r.get || len(r.parts) > 0:
		return "POST"
	}
	return "GET"
}

// sent returns the headers that curl would send, but for what names itself, as the user
// that a URL names.
func (r *request) sent(user string) http.Header {
	all := r.presets.Clone()
	if user != "" && all.Get("Authorization") == "" {
		all.Set("Authorization", basic(user))
	}
	if r.sends && !r.get && all.Get("Content-Type") == "" {
		all.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	maps.Copy(all, r.headers)
	if len(r.parts) > 0 {
		_, kind := multipart(r.parts)
		all.Set("Content-Type", kind)
	}
	return all
}

// headers has a list where a name has several values.
func (w *writer) headers(all http.Header, host string) map[string]any {
	made := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var values []text
		for _, value := range all[name] {
			if value != "" {
				values = append(values, text(w.hide(name, value, host)))
			}
		}
		if len(values) == 1 {
			made[name] = values[0]
		} else if len(values) > 1 {
			made[name] = values
		}
	}
	return made
}

// body sets what is sent, of which curl takes one kind.
func (r *request) body(j *job) error {
	kinds := 0
	for _, there := range []bool{len(r.parts) > 0, r.upload != "", r.sends && !r.get, r.head} {
		if there {
			kinds++
		}
	}
	all, typed := "", r.headers["Content-Type"]
	switch {
	case kinds > 1:
		return errors.New("-d, -F, -T and -I contradict each other")
	case r.upload != "" && len(r.urls) > 1:
		r.broken = errors.New("-T beside several URLs, of which each has its own file, or none")
	case len(r.parts) > 0 && typed != nil && typed[0] != "multipart/form-data":
		return errors.New("-F beside another Content-Type")
	case len(r.parts) > 0:
		all, _ = multipart(r.parts)
	case r.upload != "":
		j.HTTP.BodyFile = text(r.path(r.upload))
	case r.file != "" && !r.get:
		j.HTTP.BodyFile = text(r.path(r.file))
	case !r.get:
		all = r.text
	}
	switch bytes := !utf8.ValidString(all) || strings.Contains(all, "\x00"); {
	case bytes && strings.Contains(all, mark):
		return errors.New("a variable beside bytes that are no text")
	case bytes:
		j.HTTP.Bytes = base64.StdEncoding.EncodeToString([]byte(all))
	default:
		j.HTTP.Body = text(all)
	}
	return r.broken
}
