// Package openapitest checks requests and answers against the OpenAPI
// document, so that tests of a protocol are tests of its document too.
package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/varvedb/varve/openapi"
)

// Document returns the document, which is valid.
var Document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.JSON())
	if err != nil {
		return nil, fmt.Errorf("load the OpenAPI document: %w", err)
	}
	return doc, nil
})

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// maxBody is up to which size the body of an answer is checked.
const maxBody = 8 << 20

// Check returns what of an exchange is not as the document says. A request
// that the server refuses need not be; an answer always must.
func Check(req *http.Request, reqBody []byte, status int, header http.Header, body []byte) error {
	find, err := router()
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%s %s: %d", req.Method, req.URL.Path, status)
	route, params, err := find.FindRoute(plainRequest(req, reqBody))
	if err != nil {
		return checkUnrouted(where, req, status, err)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: plainRequest(req, reqBody), PathParams: params, Route: route,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, SkipSettingDefaults: true},
	}
	if status < 400 {
		if err := openapi3filter.ValidateRequest(req.Context(), in); err != nil {
			return fmt.Errorf("%s: the request is not as the OpenAPI document says, but was taken: %w", where, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: req.Method == http.MethodHead || len(body) > maxBody},
	}
	out.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(req.Context(), out); err != nil {
		return fmt.Errorf("%s: the answer is not as the OpenAPI document says: %w", where, err)
	}
	return nil
}

// plainRequest returns a request without the host, so that it is found at any
// server, and with the semicolons of statements escaped, which Varve does not
// ask for but the checker does.
func plainRequest(req *http.Request, body []byte) *http.Request {
	r := req.Clone(req.Context())
	u := *req.URL
	u.Scheme, u.Host = "", ""
	u.RawQuery = strings.ReplaceAll(u.RawQuery, ";", "%3B")
	r.URL = &u
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		body = bytes.ReplaceAll(body, []byte(";"), []byte("%3B"))
	}
	r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	r.ContentLength = int64(len(body))
	return r
}

// checkUnrouted accepts that the server knows no such address or method, and
// HEAD where there is GET.
func checkUnrouted(where string, req *http.Request, status int, err error) error {
	var route *routers.RouteError
	if !errors.As(err, &route) {
		return fmt.Errorf("%s: %w", where, err)
	}
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusServiceUnavailable || req.Method == http.MethodHead {
		return nil
	}
	return fmt.Errorf("%s: the OpenAPI document has no such address: %w", where, err)
}

// A Transport checks each exchange that goes through it, and fails those that
// are not as the document says.
type Transport struct{ Base http.RoundTripper }

// RoundTrip sends a request. The answer is read to its end before it is
// returned; one that is compressed is not checked but for its headers.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close() // it was only read
	}
	forward := req.Clone(req.Context())
	forward.Body = io.NopCloser(bytes.NewReader(sent))
	if len(sent) == 0 {
		forward.Body = http.NoBody
	}
	resp, err := t.Base.RoundTrip(forward)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was only read
	resp.Body = &brokenBody{Reader: bytes.NewReader(body), err: err}
	if err != nil || resp.Header.Get("Content-Encoding") != "" {
		return resp, nil // an answer that was cut is the caller's to see
	}
	if err := Check(req, sent, resp.StatusCode, resp.Header, body); err != nil {
		return nil, err
	}
	return resp, nil
}

// A brokenBody ends as the body that was read did.
type brokenBody struct {
	io.Reader
	err error
}

// Read returns what came, and then how it ended.
func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// Close does nothing.
func (b *brokenBody) Close() error { return nil }

// Operations returns the operations of the document, as "GET /path".
func Operations() (map[string]bool, error) {
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			all[strings.ToUpper(method)+" "+path] = true
		}
	}
	return all, nil
}
