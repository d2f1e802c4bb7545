//go:build deps

// Package varve pins the modules that the folders come to need.
package varve

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/duckdb/duckdb-go-bindings"
	_ "github.com/duckdb/duckdb-go/v2"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/go-chi/chi/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/klauspost/compress/s2"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/knadh/koanf/parsers/toml/v2"
	_ "github.com/knadh/koanf/providers/confmap"
	_ "github.com/knadh/koanf/providers/env/v2"
	_ "github.com/knadh/koanf/providers/file"
	_ "github.com/knadh/koanf/providers/posflag"
	_ "github.com/knadh/koanf/providers/structs"
	_ "github.com/knadh/koanf/v2"
	_ "github.com/maypok86/otter/v2"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/zeebo/xxh3"
	_ "go.uber.org/goleak"
	_ "gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
)
