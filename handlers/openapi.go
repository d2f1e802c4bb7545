package handlers

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/openapi"
)

// OpenAPI serves the document of the API.
type OpenAPI struct{}

var _ Protocol = (*OpenAPI)(nil)

// Register adds the routes.
func (*OpenAPI) Register(r chi.Router) {
	r.Get("/openapi.json", serveDocument("application/json", openapi.JSON))
	r.Get("/openapi.yaml", serveDocument("application/yaml", openapi.YAML))
}

func serveDocument(contentType string, document func() []byte) http.HandlerFunc {
	return Handle(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", contentType)
		_, err := w.Write(document())
		return err
	})
}

// Routes returns what the Router answers, as "GET /path".
func (rt *Router) Routes() ([]string, error) {
	var routes []string
	err := chi.Walk(rt.current.Load(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+route)
		return nil
	})
	return routes, err
}
