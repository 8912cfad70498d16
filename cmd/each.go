package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// place is what stands for the line in a command or a URL.
const place = "{}"

// eachOptions are the arguments and flags of each.
type eachOptions struct {
	*runOptions
	callOptions
	command  []string
	url      string
	method   string
	headers  []string
	attempts int // 0: as in a file
	ordered  bool
}

func newEachCmd(each func(context.Context, *eachOptions) error) *cobra.Command {
	o := &eachOptions{runOptions: newRunOptions(), method: "GET"}
	c := &cobra.Command{
		Use:   "each [flags] -- COMMAND [ARG...]\n  agentlimit each [flags] --url TEMPLATE",
		Short: "Make a call of each line of standard input",
		Long: `Make a call of each line of standard input, as soon as the limits allow, and
print what it writes as a whole when it ends. {} in an argument is the line;
without any {} the line is the last argument. In a URL, the line is
percent-encoded behind the host. Blank lines are left out.

Nothing else is printed if all calls succeed. Exit codes are those of run.`,
		Example: `  ls *.jpg | agentlimit each -j4 -- convert {} -resize 200x small-{}
  agentlimit each --rate 10/s --url 'https://api.example.com/users/{}' < ids.txt
  find . -print0 | agentlimit each -0 --limit host/nas=2 --host nas -- sync-file
  agentlimit each -o done.jsonl --resume -- ./import.sh < batch.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			o.command = args
			if err := o.describe(); err != nil {
				return err
			}
			return each(c.Context(), o)
		},
	}
	c.SetFlagErrorFunc(eachFlagError)
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	f.StringVar(&o.url, "url", "", "get this URL for each line; {} is the line")
	f.StringVar(&o.method, "method", o.method, "the request's `METHOD`")
	f.StringArrayVar(&o.headers, "header", nil, "a `HEADER` of the request, 'Name: value'; may be repeated; ${env:NAME} keeps secrets off the command line")
	f.VarP(countFlag(&o.Global, 1, 1<<20), "concurrency", "j", "most calls under way at once (default 16)")
	o.callOptions.addFlags(f)
	f.Var(countFlag(&o.attempts, 1, 1000), "attempts", "most attempts of one call, after any failure of a command (default 4, of a command after 75)")
	f.Var(durationFlag(&o.Deadline, 1), "deadline", deadlineUsage)
	o.addCoordinatorFlag(f)
	o.addEndFlags(f)
	f.BoolVarP(&o.NUL, "null", "0", false, "lines end in NUL, as those of find -print0")
	f.BoolVarP(&o.ordered, "keep-order", "k", false, "print in the order of the lines")
	f.StringVarP(&o.output, "output", "o", "", "write a record a call to `FILE`; - is standard output")
	f.BoolVar(&o.resume, "resume", false, "leave out the calls that are done in that file")
	f.BoolVar(&o.overwrite, "overwrite", false, "start an existing file anew")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line when a call ends, and a summary")
	o.addHideFlag(f)
	return c
}

// describe turns the flags into a document with one job of each line.
func (o *eachOptions) describe() error {
	job := map[string]any{"for_each": map[string]any{"lines": stdin}, "labels": map[string]any{"line": "${item:line}"}}
	doc := map[string]any{"jobs": []any{job}}
	switch {
	case o.url != "" && len(o.command) > 0:
		return &hinted{fmt.Errorf("a command, %q, beside --url", o.command[0]), "leave one of them out"}
	case o.url == "" && len(o.command) == 0:
		return &hinted{errors.New("no command is named"), "agentlimit each -- COMMAND {}, or --url 'https://example.com/{}'"}
	case len(o.command) == 1 && forShell(o.command[0]):
		return &hinted{fmt.Errorf("no program %q", o.command[0]), `for a shell, agentlimit each -- sh -c 'echo "$1"' sh`}
	case o.resume && o.output == "":
		return &hinted{errors.New("--resume is without a results file"), "-o FILE names it"}
	case o.url != "" && !strings.Contains(o.url, place):
		return &hinted{errors.New("--url is the same for each line"), "{} in it stands for the line"}
	case o.url != "":
		headers, err := readHeaders(o.headers)
		if err = errors.Join(checkTemplate(o.url), err); err != nil {
			return err
		}
		job["http"] = map[string]any{"method": o.method, "url": strings.ReplaceAll(o.url, place, withLine(place)), "headers": headers}
	case len(o.headers) > 0:
		return &hinted{errors.New("--header is without --url"), "commands have arguments instead"}
	default:
		job["exec"] = map[string]any{"argv": argv(o.command)}
	}
	if o.attempts > 0 {
		retry := map[string]any{"attempts": o.attempts}
		if o.url == "" { // whoever asks for attempts means any failure
			retry["on_exit"] = everyFailure()
		}
		job["retry"] = retry
	}
	if err := errors.Join(o.callOptions.describe(doc, job), o.check()); err != nil {
		return err
	}
	var err error
	o.Document, err = json.Marshal(doc)
	o.quiet, o.progress = !o.verbose, "none"
	return err
}

// checkTemplate refuses a URL that is none whatever its line is. It is not shown, as
// it may hold secrets.
func checkTemplate(s string) error {
	if strings.HasPrefix(s, place) || strings.HasPrefix(s, "${") {
		return nil // the line is a URL, or a variable is
	}
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return &hinted{errors.New("--url begins with neither http:// nor https://"), "--url 'https://example.com/{}'"}
	}
	_, err := url.Parse(strings.ReplaceAll(s, place, "0"))
	if escape, bad := errors.AsType[url.EscapeError](err); bad {
		return fmt.Errorf("--url: %s begins no escape: want %%25 for a %%", strings.Trim(strconv.Quote(string(escape)), `"`))
	}
	return nil
}

// forShell tells whether a command is a line for a shell, as GNU parallel takes it.
func forShell(command string) bool {
	_, err := exec.LookPath(command)
	return err != nil && strings.Contains(command, " ")
}

// eachFlagError knows the flags of xargs, too.
func eachFlagError(c *cobra.Command, err error) error {
	unknown, found := errors.AsType[*pflag.NotExistError](err)
	if found && strings.ContainsAny(unknown.GetSpecifiedShortnames(), "PnIL") {
		return &hinted{err, "-P of xargs is -j; -n1 and -I{} need not be said"}
	}
	return flagError(c, err)
}

func everyFailure() (codes []int) {
	for code := 1; code <= 255; code++ {
		codes = append(codes, code)
	}
	return codes
}

// withLine returns what a job file makes s of, with the line in its places.
func withLine(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "${", "$${"), place, "${item:line}")
}

// argv puts the line into a command, or behind it.
func argv(command []string) (args []string) {
	found := false
	for _, arg := range command {
		found = found || strings.Contains(arg, place)
		args = append(args, withLine(arg))
	}
	if !found {
		args = append(args, withLine(place))
	}
	return args
}

func readHeaders(lines []string) (map[string]string, error) {
	headers := make(map[string]string)
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || name == "" || value == "" {
			return nil, errors.New("--header: want 'Name: value' (what was given is not shown, it may hold a secret)")
		}
		for other := range headers {
			if strings.EqualFold(other, name) {
				return nil, fmt.Errorf("--header: a second %s", name)
			}
		}
		headers[name] = value
	}
	return headers, nil
}
