package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/shared/access"
)

// tokens are all that are known.
type tokens []access.Token

// find returns the token with that secret, nil if there is none. It compares with every token, in constant time each,
// so that the time taken tells nothing about them.
func (all tokens) find(secret string) *access.Token {
	if secret == "" {
		return nil
	}
	var found *access.Token
	var memory [128]byte // spares secrets of a usual length an allocation
	sum := sha256.Sum256(append(memory[:0], secret...))
	for i := range all {
		if subtle.ConstantTimeCompare(all[i].SHA256[:], sum[:]) == 1 {
			found = &all[i]
		}
	}
	return found
}

// secretOf returns the secret that a request presents: as bearer token, as password of Basic, in X-Admin-Token, or for
// GET as the query's token (as EventNative's task API takes it). The first of them that is there counts. Empty: none.
func secretOf(r *http.Request) string {
	if auth := first(r.Header, "Authorization"); auth != "" {
		scheme, rest, _ := strings.Cut(auth, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(rest)
		}
		_, password, _ := r.BasicAuth()
		return password
	}
	if secret := first(r.Header, "X-Admin-Token"); secret != "" {
		return secret
	}
	if r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, "token=") {
		query, _ := url.ParseQuery(r.URL.RawQuery)
		return query.Get("token")
	}
	return ""
}

// first returns the first value of a header named in canonical form, without the cost of finding that form.
func first(h http.Header, canonical string) string {
	if values := h[canonical]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Guarded reports whether the path tells nothing without a token: not even that it is unknown, or that a method is wrong.
func Guarded(path string) bool {
	return below(path, "/jobscheduler") || below(path, "/api") || below(path, "/tasks")
}

func below(path, root string) bool {
	rest, has := strings.CutPrefix(path, root)
	return has && (rest == "" || rest[0] == '/' || rest[0] == ':')
}
