package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManCmd(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "Write the manual pages",
		Long: `Write the manual pages: to standard output, one behind the other, or each to a
file in the folder DIR. They bear no date, unless SOURCE_DATE_EPOCH has one.`,
		Example: `  agentlimit man | man -l -
  agentlimit man ~/.local/share/man/man1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: oneFolder,
		RunE: func(c *cobra.Command, args []string) error {
			date, err := pageDate(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			for _, one := range pages(c.Root()) {
				if err := p.putPage(one, page(one, date), args); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// putPage writes the page of c to the folder in args, or to standard output.
func (p *program) putPage(c *cobra.Command, text string, args []string) error {
	if len(args) == 0 {
		return p.print(text)
	}
	path := filepath.Join(args[0], pageName(c)+".1")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %q: %w", path, pathless(err))
	}
	return nil
}

// pageDate returns the day of a moment in seconds since 1970; none if it is empty.
func pageDate(epoch string) (string, error) {
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the environment variable SOURCE_DATE_EPOCH: %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// pages are the commands that have a page of their own: the root and those below.
func pages(root *cobra.Command) []*cobra.Command {
	below := slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
	return append([]*cobra.Command{root}, below...)
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns what the help of c says, in the language of man. Cobra can write
// such pages, too, but spells flags otherwise than its help does, and what it brings
// along would delay each start by a millisecond.
func page(c *cobra.Command, date string) string {
	c.InitDefaultHelpFlag()
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		use = c.CommandPath() + " COMMAND"
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %q agentlimit\n", strings.ToUpper(roff(pageName(c))), date)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(use))
	long := c.Long
	if long == "" {
		long = c.Short
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(roff(long), "\n\n", "\n.PP\n"))
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range pages(c)[1:] {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(sub.Name()), roff(sub.Short))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	c.Flags().VisitAll(func(f *pflag.Flag) { b.WriteString(option(f)) })
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	return b.String()
}

// option returns the part of a page about a flag, as help puts it.
func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	names := "--" + f.Name
	if f.Shorthand != "" {
		names = "-" + f.Shorthand + ", " + names
	}
	if value != "" {
		value = " \\fI" + roff(value) + "\\fR"
	}
	if standard := f.DefValue; !slices.Contains([]string{"", "0", "false"}, standard) {
		usage += " (default " + standard + ")"
	}
	return fmt.Sprintf(".TP\n\\fB%s\\fR%s\n%s\n", roff(names), value, roff(strings.ReplaceAll(usage, "\n", " ")))
}

// roff spells text so that nothing in it is a command of man's language, and each
// hyphen can be copied to a command line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
