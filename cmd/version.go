package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

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
