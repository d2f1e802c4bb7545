package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/server/config"
)

// newHealthcheck serves containers, which have no curl.
func newHealthcheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a server whether it lives; exit 1 if not",
		Long: "healthcheck asks /health of the server that the same flags, environment and file would\n" +
			"start, so that in a container it needs no flags. With --url it asks another address.",
		Args: cobra.NoArgs,
	}
	url := cmd.Flags().String("url", "", "address to ask, such as http://127.0.0.1:4000/ready")
	file := addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *url == "" {
			src := sourceOf(cmd, *file)
			src.Flags["http.allow_unauthenticated"] = "true" // it only asks
			cfg, err := config.Load(src)
			if err != nil {
				return err
			}
			*url = "http://" + reachable(cfg.HTTP.Addr) + "/health"
		}
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

// reachable turns an address to listen on into one to connect to.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // config has checked it
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
