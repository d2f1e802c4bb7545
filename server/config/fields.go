package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A field is one key of the configuration with its value.
type field struct {
	key    string // such as http.addr
	value  reflect.Value
	secret bool // tagged secret:"true": never shown
}

// fieldsOf lists the keys of c in the order of the structs; keys without a
// section come first, as TOML wants them.
func fieldsOf(c *Config) []field { return appendFields(nil, "", reflect.ValueOf(c).Elem()) }

func appendFields(fields []field, prefix string, v reflect.Value) []field {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		key := prefix + tag.Get("koanf")
		if v.Field(i).Kind() == reflect.Struct {
			fields = appendFields(fields, key+".", v.Field(i))
			continue
		}
		fields = append(fields, field{key, v.Field(i), tag.Get("secret") == "true"})
	}
	return fields
}

// TOML writes the configuration in force, with secrets masked.
func (c *Config) TOML() []byte {
	var b strings.Builder
	section := ""
	for _, f := range fieldsOf(c) {
		s, name := "", f.key
		if dot := strings.LastIndexByte(f.key, '.'); dot >= 0 {
			s, name = f.key[:dot], f.key[dot+1:]
		}
		if s != section {
			fmt.Fprintf(&b, "\n[%s]\n", s)
			section = s
		}
		fmt.Fprintf(&b, "%s = %s\n", name, f.toml())
	}
	return []byte(b.String())
}

func (f field) toml() string {
	if f.secret && !f.value.IsZero() {
		return `"********"`
	}
	if s, ok := f.value.Interface().(fmt.Stringer); ok {
		return strconv.Quote(s.String())
	}
	if f.value.Kind() == reflect.String {
		return strconv.Quote(f.value.String())
	}
	return fmt.Sprint(f.value.Interface())
}
