package cmd

import (
	"github.com/spf13/cobra"

	"agentlimit/jobspec"
)

func newSchemaCmd(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of job files",
		Long: `Write the JSON Schema (draft 2020-12) of job files, with which editors complete,
explain and check them. Its $defs/line is for a line of JSON Lines.

An editor with yaml-language-server wants this on top of a job file:

    # yaml-language-server: $schema=agentlimit.schema.json`,
		Example: "  agentlimit schema >agentlimit.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return p.print(jobspec.Schema) },
	}
}
