package api

import (
	"embed"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// pages show the description in a browser. They load nothing from elsewhere, so they work offline.
//
//go:embed docs
var pages embed.FS

// pagePolicy lets the pages use what this server sends, and nothing else.
const pagePolicy = "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

func (a *API) mountDocs() {
	a.page("/docs", "docs/index.html", "text/html; charset=utf-8")
	a.page("/docs/style.css", "docs/style.css", "text/css; charset=utf-8")
	a.page("/docs/reference.js", "docs/reference.js", "text/javascript; charset=utf-8")
}

func (a *API) page(path, file, kind string) {
	body, err := pages.ReadFile(file)
	if err != nil {
		panic(err) // embedded
	}
	a.route(operation{
		Operation: huma.Operation{Method: http.MethodGet, Path: path, Hidden: true},
		handle: func(x *exchange) error {
			h := x.Header()
			h.Set("Content-Type", kind)
			h.Set("Content-Length", strconv.Itoa(len(body)))
			h.Set("Content-Security-Policy", pagePolicy)
			x.WriteHeader(http.StatusOK)
			_, _ = x.Write(body)
			return nil
		},
	})
}
