package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/journal"
)

// Resource is a part of the API, which [New] mounts: operations, and what they need. The functions that return one are in
// routes.go.
type Resource interface {
	routes(*API) []route
}

// calls are a resource whose operations do not depend on the API that it is mounted on.
type calls []route

func (c calls) routes(*API) []route { return c }

// route is one operation of the API: its method and path, the right that it demands, what it does, and how it is described.
// A path that ends in {path} takes all that is left, slashes too, escaped or not.
type route struct {
	pattern  string // as "GET /api/v1/jobs/{id}"; the operation's name in logs, measurements and scopes of idempotency keys
	right    Right
	handle   func(*exchange) error // nil: the method is not offered at this path, which another pattern would match
	describe func() *operation     // nil: it is not described
}

// parts returns the method and the path.
func (r *route) parts() (method, path string) {
	method, path, _ = strings.Cut(r.pattern, " ")
	return method, path
}

// alsoAt returns the other paths of the operations at a path. EventNative's clients ask for tasks at /tasks, with or without a
// slash at the end. The mux takes a segment that is an escaped slash for the end of the path, so that the stream of that name
// has a path of its own.
func alsoAt(path string) []string {
	if rest, is := strings.CutPrefix(path, "/api/v1/tasks"); is {
		if rest == "" {
			return []string{path + "/", "/tasks", "/tasks/"}
		}
		return []string{"/tasks" + rest}
	}
	if strings.Contains(path, "{stream}") {
		return []string{strings.Replace(path, "{stream}", "%2F", 1)}
	}
	return nil
}

// described reports whether a path is worth a description of its own.
func described(path string) bool {
	return !strings.HasSuffix(path, "/") && !strings.Contains(path, "%2F")
}

// mount makes the API serve a route, at each of its paths.
func (a *API) mount(r route) {
	a.routes = append(a.routes, r)
	method, path := r.parts()
	for _, path := range append([]string{path}, alsoAt(path)...) {
		pattern := a.muxPattern(method, path)
		a.rights[pattern] = r.right
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			if r.handle == nil {
				a.elsewhere(w, req)
				return
			}
			w.(*exchange).serve(req, &r) // only ServeHTTP calls the mux
		})
	}
}

// serve lets the route respond; req carries the values of its path.
func (x *exchange) serve(req *http.Request, r *route) {
	x.r, x.route, x.right = req, r.pattern, r.right
	err := x.demand(r.right)
	if err == nil && tooLong(req) {
		err = tooLarge()
	}
	if err == nil {
		x.act()
		err = r.handle(x)
	}
	if err != nil {
		x.fail(err)
	}
}

// act notes for the journal on whose behalf the route does what it does. Emissions are signed instead, which spares the most
// frequent operation a copy of the request.
func (x *exchange) act() {
	if x.token != nil && x.r.Method != http.MethodGet && x.route != emitRoute {
		x.r = x.r.WithContext(journal.WithActor(x.r.Context(), x.token.Name))
	}
}

// muxPattern returns what the mux is to match.
func (a *API) muxPattern(method, path string) string {
	if strings.HasSuffix(path, "/") {
		return method + " " + path + "{$}"
	}
	root, rest := strings.CutSuffix(path, "/{path}")
	if !rest {
		return method + " " + path
	}
	a.mux.HandleFunc(root, a.elsewhere) // or the mux would redirect root to root/
	return method + " " + root + "/{path...}"
}

// methods are those that an operation may have, in the order of Allow.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// elsewhere responds to what no operation takes: 405 where the path has other methods, 404 where it has none, and to
// OPTIONS with the methods. Where the path has no operation at all, a name may have lost the escapes of its slashes on the
// way; then the request goes to the operation that has it with them.
func (a *API) elsewhere(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	allow := a.allowed(r)
	switch {
	case allow == "":
		if whole, ok := a.joined(r); ok {
			a.mux.ServeHTTP(x, whole)
			return
		}
		x.fail(problem(CodeNotFound, "there is nothing at this path"))
	case r.Method == http.MethodOptions:
		x.Header().Set("Allow", allow)
		x.WriteHeader(http.StatusNoContent)
	default:
		p := problem(CodeMethod, "the method %s is not offered here, but %s", r.Method, allow)
		p.allow = allow
		x.fail(p)
	}
}

// allowed lists the methods that the path has; empty if the path is unknown.
func (a *API) allowed(r *http.Request) string {
	var found []string
	probe := *r
	for _, probe.Method = range methods {
		if a.taken(&probe) {
			found = append(found, probe.Method)
		}
	}
	if found == nil {
		return ""
	}
	return strings.Join(append(found, http.MethodOptions), ", ")
}

// taken reports whether an operation takes the request.
func (a *API) taken(r *http.Request) bool {
	_, pattern := a.mux.Handler(r)
	notOffered := func(r route) bool { return r.pattern == pattern && r.handle == nil }
	return strings.Contains(pattern, " ") && !slices.ContainsFunc(a.routes, notOffered) // operations' patterns have a method
}
