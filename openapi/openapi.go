// Package openapi holds the OpenAPI 3.1 document of the HTTP API. Its source
// is openapi.yaml with what all protocols share, and a file for each protocol.
package openapi

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed *.yaml
var source embed.FS

// head is the file that the others are merged into.
const head = "openapi.yaml"

// JSON returns the document in JSON.
func JSON() []byte { return document().json }

// YAML returns the document in YAML.
func YAML() []byte { return document().yaml }

type documents struct{ json, yaml []byte }

// document merges the source once. The source is part of the binary and
// tested, so that an error is one of ours.
var document = sync.OnceValue(func() documents {
	root, err := merge()
	if err != nil {
		panic("openapi: " + err.Error())
	}
	var d documents
	if d.json, err = json.Marshal(root); err != nil {
		panic("openapi: print JSON: " + err.Error())
	}
	if d.yaml, err = yaml.Marshal(root); err != nil {
		panic("openapi: print YAML: " + err.Error())
	}
	return d
})

func merge() (map[string]any, error) {
	names, err := source.ReadDir(".")
	if err != nil {
		return nil, err
	}
	root, err := read(head)
	if err != nil {
		return nil, err
	}
	for _, entry := range names {
		if entry.Name() == head || path.Ext(entry.Name()) != ".yaml" {
			continue
		}
		part, err := read(entry.Name())
		if err != nil {
			return nil, err
		}
		if err := mergeInto(root, part, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	return root, nil
}

func read(name string) (map[string]any, error) {
	text, err := source.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, nil
}

// mergeInto adds src to dst, where maps are in both, key by key. Nothing may
// be defined twice.
func mergeInto(dst, src map[string]any, at []string) error {
	for key, value := range src {
		where := append(slices.Clone(at), key)
		old, exists := dst[key]
		oldMap, ok1 := old.(map[string]any)
		newMap, ok2 := value.(map[string]any)
		switch {
		case !exists:
			dst[key] = value
		case ok1 && ok2 && len(where) < 3:
			if err := mergeInto(oldMap, newMap, where); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%v is defined twice", where)
		}
	}
	return nil
}
