package cmd

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCmd(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "Write the manual pages",
		Long: `Write the manual pages: to standard output, one behind the other, or each to a
file in the folder DIR, which is made if need be. They bear the date of
SOURCE_DATE_EPOCH, else of the build's last change.`,
		Example: `  agentlimit man | man -l -
  agentlimit man ~/.local/share/man/man1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: oneFolder,
		RunE: func(c *cobra.Command, args []string) error {
			date, err := pageDate(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true // it would tell the day
			header := doc.GenManHeader{Section: "1", Source: root.Name(), Date: &date}
			if len(args) == 1 {
				if err := os.MkdirAll(args[0], 0o777); err != nil {
					return err
				}
				return doc.GenManTree(root, &header, args[0])
			}
			return p.printPages(root, header)
		},
	}
}

// printPages prints the pages of the root and of the commands below it.
func (p *program) printPages(root *cobra.Command, header doc.GenManHeader) error {
	var b bytes.Buffer
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		own := header // which GenMan gives a title
		if c != root && !c.IsAvailableCommand() {
			continue
		}
		if err := doc.GenMan(c, &own, &b); err != nil {
			return err
		}
	}
	return p.print(b.String())
}

// pageDate returns a moment in seconds since 1970, else when what was built was
// changed last, so that the same build writes the same pages.
func pageDate(epoch string) (time.Time, error) {
	if epoch == "" {
		info, _ := debug.ReadBuildInfo()
		return changed(info), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the environment variable SOURCE_DATE_EPOCH: %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// changed returns when what was built was changed last; 1970 if that is not known.
func changed(info *debug.BuildInfo) time.Time {
	if info != nil {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return at
			}
		}
	}
	return time.Unix(0, 0).UTC()
}
