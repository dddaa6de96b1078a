package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/millrace/millrace/shared/access"
)

// bearerKey is where a context holds the token that its requests are made with.
type bearerKey struct{}

// As returns ctx for requests within the process that are made on behalf of a token which the caller has checked itself, such as
// that of a session. Such a request shows no secret; one that does is judged by its secret.
func As(ctx context.Context, token *access.Token) context.Context {
	return context.WithValue(ctx, bearerKey{}, token)
}

// bearer returns the token that ctx has by [As], nil if it has none.
func bearer(ctx context.Context) *access.Token {
	token, _ := ctx.Value(bearerKey{}).(*access.Token)
	return token
}

// Permits reports whether there is such an operation and the role may call it. The path is escaped, without a query.
func (a *API) Permits(role access.Role, method, path string) bool {
	u, err := url.Parse(path)
	if err != nil {
		return false
	}
	_, pattern := a.mux.Handler(&http.Request{Method: method, URL: u})
	right, known := a.rights[pattern]
	return known && right.GrantedTo(role)
}
