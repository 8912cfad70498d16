// Package cmd is the command line of agentlimit: flags, wiring, words and exit
// codes. Nothing below it knows of flags, streams or signals.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	log.SetOutput(io.Discard) // libraries quote there what servers sent, secrets too
	p := &program{os.Stdin, os.Stdout, os.Stderr, newVoice(os.Stderr, "text"), true}
	return p.main(context.Background(), os.Args[1:])
}

// Run runs the command line args with the given streams, and returns the exit
// code. It takes no signals: when ctx is done, a run stops as if by SIGTERM.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin, stdout, stderr, newVoice(stderr, "text"), false}
	return p.main(ctx, args)
}

// program is what commands work with besides their flags.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	voice          *voice // on stderr
	signals        bool   // those of the process stop a run
}

func (p *program) main(ctx context.Context, args []string) int {
	root := newRootCmd(p)
	root.SetArgs(append([]string{}, args...)) // nil stands for those of the process
	err := root.ExecuteContext(ctx)
	if unsaid := unsaid(err); unsaid != nil {
		p.voice.fail(unsaid)
	}
	return exitCode(err)
}

// print writes data to standard output.
func (p *program) print(text string) error {
	_, err := io.WriteString(p.data(), text)
	return err
}

// data is standard output, with errors that say so.
func (p *program) data() io.Writer { return breaking{p.stdout, "write to standard output"} }

func newRootCmd(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "agentlimit",
		Short: "Run rate-limited batches of HTTP requests and commands",
		Long: `Run batches of HTTP requests and commands against services that limit them:
never over a limit, never idle, never lost, never late.

Each flag may be set by a variable, such as AGENTLIMIT_GRACE=20s for --grace.
A flag wins over its variable, and that over the job file.`,
		Example: `  agentlimit run jobs.yaml
  agentlimit validate --show jobs.yaml`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // all that is no command

		SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				c.SetOut(p.stderr)
				c.Help()
				return &hinted{errors.New("no command is given"), "agentlimit run jobs.yaml runs the jobs of a file"}
			}
			hint := "agentlimit --help lists the commands"
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("did you mean %q?", near[0])
			}
			return &hinted{fmt.Errorf("unknown command %q", args[0]), hint}
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return setFromEnv(c.Flags(), os.LookupEnv) },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.CompletionOptions.DisableDefaultCmd = true // ours refuses other shells
	root.AddCommand(newRunCmd(p.run), newEachCmd(p.each), newExecCmd(p.exec), newStatusCmd(p.status), newValidateCmd(p.validate), newPlanCmd(p.plan), newVersionCmd(p),
		newReportCmd(p.report), newAuditCmd(p.audit),
		newInitCmd(p.initFile), newSchemaCmd(p), newManCmd(p), newCompletionCmd(p))
	for _, c := range root.Commands() {
		complete(c)
	}
	return root
}

func newVersionCmd(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := "(devel)"
			// Go puts the commit into the version of what it builds from a checkout.
			if info, found := debug.ReadBuildInfo(); found && info.Main.Version != "" {
				version = info.Main.Version
			}
			return p.print(fmt.Sprintf("agentlimit %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
}
