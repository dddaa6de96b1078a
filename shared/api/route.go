package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// operation is one call of the API: how it is described, what it demands, and what it does.
type operation struct {
	huma.Operation
	also   []string // other paths with the same operation; one that ends in a slash is not described
	right  Right
	handle func(*exchange) error
}

// route mounts an operation that reads its request and writes its response itself, because it is too frequent or too
// particular for reflection. A path that ends in {path} takes all that is left, slashes too, escaped or not.
func (a *API) route(op operation) {
	handle := func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange) // only ServeHTTP calls the mux
		x.enter(r, op.Method+" "+op.Path)
		if err := x.demand(op.right); err != nil {
			x.fail(err)
			return
		}
		if err := op.handle(x); err != nil {
			x.fail(err)
		}
	}
	a.mux.HandleFunc(a.pattern(op.Method, op.Path), handle)
	a.announce(op.Operation, op.right)
	for n, path := range op.also {
		a.mux.HandleFunc(a.pattern(op.Method, path), handle)
		if strings.HasSuffix(path, "/") {
			continue
		}
		same := op.Operation
		same.Path, same.OperationID = path, op.OperationID+"Also"+strconv.Itoa(n)
		same.Description = strings.TrimSpace(op.Description + " The same as " + op.Path + ".")
		a.announce(same, op.right)
	}
}

// announce adds an operation to the description.
func (a *API) announce(op huma.Operation, right Right) {
	op = described(op, right)
	if !op.Hidden {
		a.typed.OpenAPI().AddOperation(&op)
	}
}

// pattern returns what the mux is to match.
func (a *API) pattern(method, path string) string {
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

// shadow keeps a path from matching another operation's that has a parameter in its place: these methods are not offered
// at the path.
func (a *API) shadow(path string, methods ...string) {
	for _, method := range methods {
		pattern := method + " " + path
		a.mux.HandleFunc(pattern, a.elsewhere)
		a.shadows[pattern] = true
	}
}

// enter notes that the request has found its operation; r carries the path's values.
func (x *exchange) enter(r *http.Request, route string) { x.r, x.route = r, route }

// register mounts an operation whose input and output are structs that huma reads, writes and describes.
func register[I, O any](a *API, right Right, op huma.Operation, h func(context.Context, *I) (*O, error)) {
	op = described(op, right)
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		x := w.(*exchange)
		x.enter(r, op.Method+" "+op.Path)
		if err := x.demand(right); err != nil {
			x.fail(err)
			return
		}
		next(huma.WithValue(ctx, exchangeKey{}, x))
	}}
	huma.Register(a.typed, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, ctx.Value(exchangeKey{}).(*exchange).refuse(err)
		}
		return out, nil
	})
}

// exchangeKey finds the exchange in the context of a typed operation.
type exchangeKey struct{}

// refuse returns err as the Problem that huma is to write, and keeps its cause for the log.
func (x *exchange) refuse(err error) *Problem {
	x.cause = err
	p := problemOf(err)
	p.RequestID = x.id
	return p
}

// newTyped returns huma on a's mux, without the defaults that do not suit: no schema links in bodies, no pages of its
// own that load from elsewhere.
func newTyped(a *API, version string) huma.API {
	return humago.New(a.mux, huma.Config{
		OpenAPI:       document(version),
		Formats:       map[string]huma.Format{typeJSON: huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: typeJSON,
	})
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
	return strings.Contains(pattern, " ") && !a.shadows[pattern] // operations' patterns have a method
}
