package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func newCompletionCmd(p *program) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write what completes commands and flags in a shell",
		Long: `Write a script that has a shell (bash, zsh, fish or powershell) complete
commands, flags and their words.`,
		Example: `  source <(agentlimit completion bash)
  agentlimit completion zsh >"${fpath[1]}/_agentlimit"
  agentlimit completion fish >~/.config/fish/completions/agentlimit.fish`,
		ValidArgs: shells,
		Args:      cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &hinted{errors.New("want one shell"), "agentlimit completion bash, zsh, fish or powershell"}
			}
			root := c.Root()
			write := map[string]func(io.Writer) error{
				"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
				"zsh":        root.GenZshCompletion,
				"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
				"powershell": root.GenPowerShellCompletionWithDesc,
			}[args[0]]
			if write == nil {
				return &hinted{fmt.Errorf("unknown shell %q", args[0]), "want bash, zsh, fish or powershell"}
			}
			return write(p.data())
		},
	}
}
