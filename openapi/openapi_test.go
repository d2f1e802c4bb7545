package openapi

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

func TestDocumentIsValid(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(JSON())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Error(err)
	}
	ids := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if other := ids[op.OperationID]; op.OperationID == "" || other != "" {
				t.Errorf("%s: operationId %q, which %s has", where, op.OperationID, other)
			}
			ids[op.OperationID] = where
			if len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
				t.Errorf("%s: tags %v, want one of those that are described", where, op.Tags)
			}
		}
	}
}

func TestYAMLIsTheSameDocument(t *testing.T) {
	var fromJSON, fromYAML any
	if err := json.Unmarshal(JSON(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(YAML(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, fromYAML) {
		t.Error("the YAML says something else than the JSON")
	}
}

func TestNothingIsDefinedTwice(t *testing.T) {
	f := func(dst, src map[string]any, want string) {
		t.Helper()
		err := mergeInto(dst, src, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("merge: %v, want %q", err, want)
		}
	}
	m := func(k string, v any) map[string]any { return map[string]any{k: v} }
	f(m("paths", m("/a", m("get", 1))), m("paths", m("/b", m("get", 1))), "")
	f(m("paths", m("/a", m("get", 1))), m("paths", m("/a", m("get", 2))), "[paths /a get] is defined twice")
	f(m("openapi", "3.1.0"), m("openapi", "3.1.0"), "[openapi] is defined twice")
}
