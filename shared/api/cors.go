package api

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// corsAge is how long a browser may keep what a preflight has told it: at most two hours, in those that have a limit.
const corsAge = 2 * time.Hour

// shared returns a handler that lets pages of these origins use the API from browsers. Preflights are answered here, without a token, since
// browsers send none with them; what follows one needs a token as ever. Cookies are not allowed to come along: a page shows the token that it was
// given, and the dashboard's session is the dashboard's alone. It is done here and not by gateways, so that it is the same on every host.
func shared(origins []string, next http.Handler) http.Handler {
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: methods,
		AllowedHeaders: []string{
			"Authorization", "X-Admin-Token", "Accept", "Content-Type", "Prefer", "Last-Event-ID", "Traceparent", "Tracestate",
			"Idempotency-Key", producerHeader, consumerHeader, "X-Request-Id",
		},
		ExposedHeaders: []string{
			"Allow", "Idempotent-Replayed", "Last-Event-ID", "Link", "Location", "Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge: int(corsAge.Seconds()),
	}).Handler(next)
}
