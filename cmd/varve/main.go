// Command varve is the whole of Varve: the server, and the tools that look at
// its files.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRoot().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "varve:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "varve",
		Short:         "An observability database in one binary",
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newStandalone(), newInspect(), newCheck(), newHealthcheck(), newVersion())
	return root
}

// group makes cmd, which only has commands below it, say so: without an
// argument it prints them, and a wrong one is an error. Cobra would print the
// help and call it a success.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2 // a group has its own; cobra sets only the root's
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", near[0])
		}
		return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
	}
	return cmd
}

// onePath refuses everything but one argument, and shows what is expected.
func onePath(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s takes one path, not %d\n\n%s", cmd.CommandPath(), len(args), strings.TrimRight(cmd.UsageString(), "\n"))
}
