package cmd

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed starter.yaml
var starter string

// initOptions are the arguments of init.
type initOptions struct {
	file     string // to write; - is standard output
	fromCurl bool   // from command lines on standard input
	fromCSV  string // from the rows of this file; empty: not
	url      string // what a row is asked of
}

func newInitCmd(run func(*initOptions) error) *cobra.Command {
	o := &initOptions{file: "jobs.yaml"}
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a job file to start from",
		Long: `Write a job file to start from (jobs.yaml, or FILE; - is standard output), with
comments. It runs as it is, without a network. No file is replaced.

With --from-curl it has a job for each curl command line on standard input, read
as a shell reads it; nothing in it is run. What has no place in a job is named.
Credentials become ${env:NAME}: the file holds none.

With --from-csv it has a job for each row of a file, whose columns stand in
--url as {COLUMN}.`,
		Example: `  agentlimit init
  agentlimit init - | less
  agentlimit init --from-curl calls.yaml <calls.sh
  agentlimit init --from-csv orders.csv --url 'https://example.com/{order}'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: oneFolder,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.file = args[0]
			}
			return run(o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.fromCurl, "from-curl", false, "from curl command lines on standard input")
	f.StringVar(&o.fromCSV, "from-csv", "", "from the rows of `FILE`, with --url")
	f.Var(&value{kind: "TEMPLATE", read: func(s string) error { o.url = s; return nil }}, "url", "what is got of each row; {COLUMN} is its field")
	return c
}

// initFile writes the file to start from.
func (p *program) initFile(o *initOptions) error {
	switch {
	case o.fromCurl && o.fromCSV != "":
		return &hinted{errors.New("--from-curl and --from-csv contradict each other"), "leave one of them out"}
	case o.fromCurl:
		return p.initFromCurl(o)
	case o.fromCSV != "":
		return p.initFromCSV(o)
	case o.url != "":
		return &hinted{errors.New("--url is without --from-csv"), "--from-csv FILE --url 'https://example.com/{COLUMN}'"}
	}
	return p.writeNew(o.file, starter, runsIt(o.file))
}

func runsIt(file string) string { return fmt.Sprintf("; agentlimit run %s runs it", file) }

// writeNew writes a job file where there is none, and says so, and more about it.
func (p *program) writeNew(file, text, more string) error {
	if file == stdout {
		return p.print(text)
	}
	if slices.Contains([]string{".json", ".jsonl", ".ndjson"}, strings.ToLower(filepath.Ext(file))) {
		return &hinted{fmt.Errorf("write %q: the job file to start from is YAML", file), "name a file that ends in .yaml"}
	}
	if err := notPacked(file); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(file)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return &hinted{fmt.Errorf("write %q: it exists already", file), "name another file, such as agentlimit init other.yaml"}
	case err != nil:
		return fmt.Errorf("write %q: %w", file, pathless(err))
	}
	p.voice.say(slog.LevelInfo, file+" is written"+more)
	return nil
}
