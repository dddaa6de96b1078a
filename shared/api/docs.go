package api

import (
	"embed"
	"net/http"
)

// pages show the description in a browser. They load nothing from elsewhere, so they work offline.
//
//go:embed docs
var pages embed.FS

// pagePolicy lets the pages use what this server sends, and nothing else.
const pagePolicy = "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// page returns what responds with one of the pages, which is of that media type.
func page(file, kind string) func(*exchange) error {
	body, err := pages.ReadFile(file)
	if err != nil {
		panic(err) // embedded
	}
	return func(x *exchange) error {
		x.Header().Set("Content-Security-Policy", pagePolicy)
		x.bytes(http.StatusOK, kind, body)
		return nil
	}
}
