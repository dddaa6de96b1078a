package api

import (
	"embed"
	"net/http"
)

// pages show the description in a browser. They load nothing from elsewhere, so they work offline.
//
//go:embed docs
var pages embed.FS

// pagePolicy lets pages use what this server sends, and nothing else.
const pagePolicy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageHeaders sets the headers that every page has, the API's and those of a dashboard: it loads nothing from elsewhere, is not framed, kept
// or taken for something else, and tells other sites nothing.
func PageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// page returns what responds with one of the pages, which is of that media type.
func page(file, kind string) func(*exchange) error {
	body, err := pages.ReadFile(file)
	if err != nil {
		panic(err) // embedded
	}
	return func(x *exchange) error {
		PageHeaders(x.Header())
		x.bytes(http.StatusOK, kind, body)
		return nil
	}
}
