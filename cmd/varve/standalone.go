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
	return group(cmd)
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
		Long: "start serves all protocols on one port until SIGTERM or Ctrl-C, which stop it in order.\n" +
			"A second one ends it at once; no write that was acknowledged is lost by that.\n\n" +
			"Every key of the configuration can be given in the TOML file and in the environment, where\n" +
			"two underscores stand for a dot: VARVE_STANDALONE__HTTP__ADDR=127.0.0.1:5000 is http.addr.\n" +
			"Flags win over the environment, the environment wins over the file.",
		Args: cobra.NoArgs,
	}
	file := addConfigFlags(cmd)
	cmd.Flags().String("data-home", "", "directory that holds the data (default ./varve-data)")
	cmd.Flags().Bool("allow-unauthenticated", false, "serve other machines although there is no access control yet")
	cmd.Flags().String("memory-limit", "", "bytes the server may use, such as 2GiB (default: the cgroup's limit, or 80 % of the machine)")
	cmd.Flags().String("log-level", "", "debug, info, warn or error (default info)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return start(sourceOf(cmd, *file))
	}
	return cmd
}

// addConfigFlags adds the flags that say where a server is.
func addConfigFlags(cmd *cobra.Command) (file *string) {
	file = cmd.Flags().StringP("config-file", "c", "", "TOML file; config.example.toml shows every key")
	cmd.Flags().String("http-addr", "", "address and port of the server (default 127.0.0.1:4000)")
	return file
}

// sourceOf returns the configuration's sources, with the flags that were given.
func sourceOf(cmd *cobra.Command, file string) config.Source {
	src := config.Source{File: file, Environ: os.Environ(), Flags: map[string]string{}}
	for name, key := range flagKeys {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			src.Flags[key] = f.Value.String()
		}
	}
	return src
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
	for _, name := range config.UnknownEnviron(src.Environ) {
		log.Warn("environment variable means nothing to varve; keys are spelled "+config.EnvPrefix+"HTTP__ADDR", "name", name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on a signal does what it does by default: kill
	return server.Run(ctx, cfg, log)
}
