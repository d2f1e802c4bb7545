// Command varve is the whole of Varve: the server, and the tools that look at
// its files.
package main

import (
	"context"
	"fmt"
	"os"

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
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newStandalone(), newInspect(), newCheck(), newHealthcheck(), newVersion())
	return root
}
