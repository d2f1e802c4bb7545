package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/telemetry"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := telemetry.Build()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "varve %s (commit %s, %s)\n", b.Version, b.Commit, b.GoVersion)
			return err
		},
	}
}
