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
	file string // to write; - is standard output
}

func newInitCmd(p *program, run func(*initOptions) error) *cobra.Command {
	o := &initOptions{file: "jobs.yaml"}
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a job file to start from",
		Long: `Write a job file to start from (jobs.yaml, or FILE; - is standard output), with
comments. It runs as it is, without a network. No file is replaced.`,
		Example: `  agentlimit init
  agentlimit init - | less`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: oneFolder,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.file = args[0]
			}
			return run(o)
		},
	}
}

func (p *program) writeStarter(o *initOptions) error {
	if o.file == stdout {
		return p.print(starter)
	}
	if slices.Contains([]string{".json", ".jsonl", ".ndjson"}, strings.ToLower(filepath.Ext(o.file))) {
		return &hinted{fmt.Errorf("write %q: the job file to start from is YAML", o.file), "name a file that ends in .yaml"}
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.WriteString(starter)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(o.file)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return &hinted{fmt.Errorf("write %q: it exists already", o.file), "name another file, such as agentlimit init other.yaml"}
	case err != nil:
		return fmt.Errorf("write %q: %w", o.file, pathless(err))
	}
	p.voice.say(slog.LevelInfo, fmt.Sprintf("%s is written; agentlimit run %[1]s runs it", o.file))
	return nil
}
