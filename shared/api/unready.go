package api

import "net/http"

// Unready returns the API of a server that is not ready to serve yet: it serves /healthz, and responds to everything else with a
// 503 that says why and when to come back; below guarded paths, only to clients with a token.
func Unready(o Options, why string) http.Handler {
	a := New(o, Operations(Probes{}))
	a.unready = why
	return a
}

// early returns a 503 while the server is not ready for what is asked.
func (a *API) early(path string) error {
	if a.unready == "" || path == "/healthz" {
		return nil
	}
	return problem(CodeUnavailable, "%s", a.unready)
}
