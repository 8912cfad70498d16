package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agentlimit/jobspec"
	"agentlimit/jobspec/curl"
)

// maxLines bounds the command lines that init reads, in bytes.
const maxLines = 64 << 20

// initFromCurl makes a job file of command lines, and says what is not in it.
func (p *program) initFromCurl(o *initOptions) error {
	lines, err := io.ReadAll(io.LimitReader(p.stdin, maxLines+1))
	switch {
	case err != nil:
		return fmt.Errorf("read command lines: %w", err)
	case len(lines) > maxLines:
		return fmt.Errorf("read command lines: over %d MiB", maxLines>>20)
	}
	made, err := curl.Convert(string(lines), o.beside)
	if err != nil {
		return err
	}
	for _, note := range made.Left {
		p.voice.note(slog.LevelWarn, fmt.Sprintf("line %d: not carried over: %s", note.Line, printable(note.Text)))
	}
	if made.Jobs == 0 {
		return &hinted{errors.New("no job could be made of standard input"), "agentlimit init --from-curl jobs.yaml <calls.sh"}
	}
	if err := p.writeNew(o.file, made.Text, ", with "+many(int64(made.Jobs), "job")); err != nil || o.file == stdout {
		return err
	}
	p.toSet(made.Secrets)
	return nil
}

// toSet says which variables a job file needs.
func (p *program) toSet(secrets []curl.Secret) {
	for _, s := range secrets {
		p.voice.say(slog.LevelInfo, fmt.Sprintf("set the variable %s: %s", s.Name, printable(s.What)))
	}
}

// beside returns the path of a file, which is relative to the working folder, as the
// job file that is written has to name it.
func (o *initOptions) beside(path string) string {
	if o.file == stdout || filepath.IsAbs(path) {
		return path
	}
	from, err := filepath.Abs(filepath.Dir(o.file))
	to, err2 := filepath.Abs(path)
	if err = errors.Join(err, err2); err != nil {
		return path
	}
	if rel, err := filepath.Rel(from, to); err == nil {
		return filepath.ToSlash(rel)
	}
	return to
}

// initFromCSV makes a job file with a job for each row, and sees that it is one.
func (p *program) initFromCSV(o *initOptions) error {
	if o.url == "" {
		return &hinted{errors.New("--from-csv is without --url"), "--url 'https://example.com/{COLUMN}' says what is got of each row"}
	}
	if o.fromCSV == stdin || isStream(o.fromCSV) {
		return &hinted{errors.New("--from-csv needs a file"), "rows of standard input are for_each: {csv: -}"}
	}
	columns, err := jobspec.Columns(o.fromCSV)
	if err != nil {
		return fmt.Errorf("--from-csv: %w", err)
	}
	if userInfo.MatchString(o.url) {
		return &hinted{errors.New("--url: a user and a password would stand in the job file"), `headers: {Authorization: "Basic ${env:NAME}"} in the job file names a variable for them`}
	}
	template := o.url
	if at := strings.IndexByte(braces.ReplaceAllStringFunc(o.url, func(place string) string { return strings.Repeat("x", len(place)) }), '#'); at >= 0 {
		template = o.url[:at] // what is behind it is not sent
	}
	hidden, secrets := curl.HideURL(template, braces)
	url, used, err := withColumns(hidden, columns)
	used = slices.DeleteFunc(used, func(column string) bool { return inSecret(hidden, column) })
	switch {
	case err != nil:
		return err
	case len(braces.FindAllString(template, -1))+len(secrets) > len(braces.FindAllString(hidden, -1)): // one has gone
		return errors.New("--url: a column or a variable beside what may be a secret")
	}
	spec, err := jobspec.Load(jobspec.Options{
		Files: []string{stdin}, Format: "yaml", Stdin: strings.NewReader(rowsFile(o.fromCSV, url, used)),
		Env: func(string) (string, bool) { return "a-value", true },
	})
	if err != nil {
		return notOf(o.fromCSV, err)
	}
	spec.Close()
	err = p.writeNew(o.file, rowsFile(o.beside(o.fromCSV), url, used), ", with "+many(spec.Jobs, "job")+runsIt(o.file))
	if err == nil && o.file != stdout {
		p.toSet(secrets)
	}
	return err
}

// userInfo matches a URL that names a user.
var userInfo = regexp.MustCompile(`^[^/?#]*//[^/?#]*@`)

// notOf says of what is wrong in the job file, which nobody has seen, and not in the rows,
// that it is of the template.
func notOf(rows string, err error) error {
	if all, found := errors.AsType[jobspec.Errors](err); found && all[0].Pos.File != rows {
		row := ""
		if all[0].Row != (jobspec.Position{}) {
			row = " (row " + all[0].Row.String() + ")"
		}
		return fmt.Errorf("--url: %s%s", all[0].Text, row)
	}
	return err
}

// inSecret reports whether a column stands where a secret is expected, in the query of a
// template. No label shows it.
func inSecret(template, column string) bool {
	_, query, _ := strings.Cut(template, "?")
	return slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
		key, value, _ := strings.Cut(pair, "=")
		return curl.SecretKey(key) && strings.Contains(value, "{"+column+"}")
	})
}

// braces matches a place for a column, and a reference, which stays as it is.
var braces = regexp.MustCompile(`\$?\{[^{}]*\}`)

// withColumns makes references of the columns in a template, and says which.
func withColumns(template string, columns []string) (url string, used []string, err error) {
	url = braces.ReplaceAllStringFunc(template, func(place string) string {
		name := strings.Trim(place, "{}")
		switch {
		case place[0] == '$':
			return place
		case !slices.Contains(columns, name):
			err = &hinted{fmt.Errorf("--url: no column %q", name), "the first row names " + strings.Join(columns, ", ")}
		case !slices.Contains(used, name):
			used = append(used, name)
		}
		return "${item:" + name + "}"
	})
	if err == nil && url == template {
		err = &hinted{errors.New("--url is the same for each row"), "{" + columns[0] + "} in it stands for that column"}
	}
	return url, used, err
}

// rowsFile is a job file for the rows of a file; its labels say in the records which
// row it was.
func rowsFile(csv, url string, used []string) string {
	labels := make(map[string]string)
	for _, name := range used {
		labels[name] = "${item:" + name + "}"
	}
	return fmt.Sprintf(`version: 1

limits:
  hosts:
    "*": {concurrency: 4}           # of each host; rate: 10/s is another

# A job for each row. A column that differs for each may be its id, such as
# id: row-${item:%s}
jobs:
  - for_each: {csv: %s}
    http:
      method: GET
      url: %s
    labels: %s
`, printable(append(slices.Clone(used), "COLUMN")[0]), inJSON(csv), inJSON(url), inJSON(labels))
}

// inJSON spells a value in a way that YAML knows, too.
func inJSON(v any) string {
	var b strings.Builder
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	lines.Encode(v) // texts, to memory
	return strings.TrimSpace(b.String())
}
