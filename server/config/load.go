package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/varvedb/varve/fault"
)

// EnvPrefix starts the environment variables that configure a standalone
// server; two underscores stand for the dot of a key, as in
// VARVE_STANDALONE__HTTP__ADDR for http.addr.
const EnvPrefix = "VARVE_STANDALONE__"

// A Source is where a configuration comes from, besides the defaults.
type Source struct {
	File    string            // path of a TOML file; empty: none
	Environ []string          // as os.Environ gives it
	Flags   map[string]string // keys that flags set, which win
}

// Load reads a configuration and checks it.
func Load(src Source) (Config, error) {
	c := Default()
	k := koanf.New(".")
	if src.File != "" {
		if err := loadLayer(k, src.File, func(l *koanf.Koanf) error {
			return l.Load(file.Provider(src.File), toml.Parser())
		}); err != nil {
			return c, err
		}
	}
	vars := env.Provider(".", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return src.Environ },
		TransformFunc: func(name, value string) (string, any) {
			return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, EnvPrefix), "__", ".")), value
		},
	})
	if err := loadLayer(k, "the environment ("+EnvPrefix+"…)", func(l *koanf.Koanf) error { return l.Load(vars, nil) }); err != nil {
		return c, err
	}
	flags := map[string]any{}
	for key, value := range src.Flags {
		flags[key] = value
	}
	if err := k.Load(confmap.Provider(flags, "."), nil); err != nil {
		return c, fmt.Errorf("read flags: %w", err)
	}
	if err := decode(k, &c); err != nil {
		return c, fault.Errorf(fault.Invalid, "configuration: %w", err)
	}
	return c, c.check()
}

// loadLayer reads one source, refuses keys that do not exist, and puts it over
// what k has.
func loadLayer(k *koanf.Koanf, name string, load func(*koanf.Koanf) error) error {
	layer := koanf.New(".")
	if err := load(layer); err != nil {
		if os.IsNotExist(err) {
			return fault.Errorf(fault.Invalid, "configuration file %s does not exist", name)
		}
		return fault.Errorf(fault.Invalid, "read configuration from %s: %w", name, err)
	}
	known := map[string]bool{}
	c := Default()
	for _, f := range fieldsOf(&c) {
		known[f.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(layer.All())) {
		if !known[key] {
			return fault.Errorf(fault.Invalid, "configuration key %q in %s does not exist", key, name)
		}
	}
	return k.Merge(layer)
}

// UnknownEnviron returns the names of variables that look like ours, and that
// nothing reads: most are VARVE_STANDALONE__ misspelled.
func UnknownEnviron(environ []string) []string {
	var names []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(strings.ToUpper(name), "VARVE_") && !strings.HasPrefix(name, EnvPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func decode(k *koanf.Koanf, c *Config) error {
	err := k.UnmarshalWithConf("", c, koanf.UnmarshalConf{
		DecoderConfig: &mapstructure.DecoderConfig{
			Result:           c,
			TagName:          "koanf",
			WeaklyTypedInput: true, // the environment has only strings
			ErrorUnused:      true,
			DecodeHook:       mapstructure.ComposeDecodeHookFunc(checkUnits, mapstructure.TextUnmarshallerHookFunc()),
		},
	})
	if err == nil {
		return nil
	}
	// The decoder writes a heading and a line for each fault.
	lines := strings.FieldsFunc(err.Error(), func(c rune) bool { return c == '\n' })
	return errors.New(strings.Join(lines[min(1, len(lines)-1):], "; "))
}
