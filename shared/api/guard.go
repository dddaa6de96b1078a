package api

import "net/http"

// Has reports whether the request's path is the API's, whatever its method: one that is guarded, or that has an operation.
func (a *API) Has(r *http.Request) bool {
	r = cleaned(r)
	return Guarded(r.URL.Path) || a.allowed(r) != ""
}

// Refuse responds with a problem, as the API does. It is for what a host serves beside the resources. A header that the problem would have,
// such as WWW-Authenticate, stays as w has it.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, code Code, detail string) {
	x := a.begin(w, r)
	defer x.end()
	x.fail(problem(code, "%s", detail))
}

// Guard returns a handler that checks, as the API does, that the client has the right, and then calls next; others get a
// 401 or a 403. It is for what a host serves beside the resources, such as deliveries of triggers.
func (a *API) Guard(right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := a.begin(w, r)
		defer x.end()
		if err := x.demand(right); err != nil {
			x.fail(err)
			return
		}
		next.ServeHTTP(x, r)
	})
}
