package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/server"
	"github.com/varvedb/varve/server/config"
	"github.com/varvedb/varve/telemetry"
)

func newStandalone() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "standalone",
		Short: "Run everything in one process",
	}
	cmd.AddCommand(newStandaloneStart())
	return cmd
}

// flagKeys says which configuration key a flag sets.
var flagKeys = map[string]string{
	"http-addr":             "http.addr",
	"data-home":             "data_home",
	"allow-unauthenticated": "http.allow_unauthenticated",
	"memory-limit":          "memory.limit",
	"log-level":             "log.level",
}

func newStandaloneStart() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a server; SIGTERM or Ctrl-C stops it in order, a second one at once",
		Args:  cobra.NoArgs,
	}
	file := cmd.Flags().StringP("config-file", "c", "", "TOML file; config.example.toml shows every key")
	cmd.Flags().String("http-addr", "", "address and port to listen on (default 127.0.0.1:4000)")
	cmd.Flags().String("data-home", "", "directory that holds the data (default ./varve-data)")
	cmd.Flags().Bool("allow-unauthenticated", false, "serve other machines although there is no access control yet")
	cmd.Flags().String("memory-limit", "", "bytes the server may use, such as 2GiB (default: the cgroup's or the machine's)")
	cmd.Flags().String("log-level", "", "debug, info, warn or error (default info)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		src := config.Source{File: *file, Environ: os.Environ(), Flags: map[string]string{}}
		for name, key := range flagKeys {
			if f := cmd.Flags().Lookup(name); f.Changed {
				src.Flags[key] = f.Value.String()
			}
		}
		return start(src)
	}
	return cmd
}

func start(src config.Source) error {
	cfg, err := config.Load(src)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on a signal does what it does by default: kill
	return server.Run(ctx, cfg, log)
}
