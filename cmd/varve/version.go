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
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

func versionLine() string {
	b := telemetry.Build()
	return fmt.Sprintf("varve %s (commit %s, %s)", b.Version, b.Commit, b.GoVersion)
}
