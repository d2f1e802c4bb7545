package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// newHealthcheck serves containers, which have no curl.
func newHealthcheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a server whether it lives; exit 1 if not",
		Args:  cobra.NoArgs,
	}
	url := cmd.Flags().String("url", "http://127.0.0.1:4000/health", "address to ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client := http.Client{Timeout: 5 * time.Second}
		resp, err := client.Get(*url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", *url, resp.Status)
		}
		return nil
	}
	return cmd
}
