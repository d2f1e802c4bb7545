package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/openapi/openapitest"
)

// Every address that the server answers is in the OpenAPI document, and every
// one that is in it is answered.
func TestEveryRouteIsDocumented(t *testing.T) {
	s, err := Start(testConfig(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	routes, err := s.router.Routes()
	if err != nil {
		t.Fatal(err)
	}
	documented, err := openapitest.Operations()
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) < 20 {
		t.Fatalf("only %d routes found: the test looks in the wrong place", len(routes))
	}
	for _, r := range routes {
		if !documented[r] {
			t.Errorf("%s is answered and not in openapi/", r)
		}
	}
	for op := range documented {
		if !slices.Contains(routes, op) {
			t.Errorf("%s is in openapi/ and not answered", op)
		}
	}
	if strings.Contains(strings.Join(routes, "\n"), "*") {
		t.Error("a route with a wildcard hides addresses from this test")
	}
}
