package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Token lets its bearer in. Only the secret's hash is kept.
type Token struct {
	Name   string   // for logs and the scope of idempotency keys; not secret
	Role   Role     // what the bearer may do
	SHA256 [32]byte // of the secret
}

// NewToken returns the token whose secret is given in clear.
func NewToken(name string, role Role, secret string) Token {
	return Token{Name: name, Role: role, SHA256: sha256.Sum256([]byte(secret))}
}

// ParseHash reads the hexadecimal SHA-256 of a secret, as configuration files have it.
func ParseHash(text string) ([32]byte, error) {
	var sum [32]byte
	if len(text) != hex.EncodedLen(len(sum)) {
		return sum, fmt.Errorf("api: a sha256 has 64 hexadecimal digits, not %d", len(text))
	}
	if _, err := hex.Decode(sum[:], []byte(text)); err != nil {
		return sum, fmt.Errorf("api: sha256: %w", err)
	}
	return sum, nil
}

// tokens are all that are known.
type tokens []Token

// find returns the token with that secret, nil if there is none. It compares with every token, in constant time each,
// so that the time taken tells nothing about them.
func (all tokens) find(secret string) *Token {
	if secret == "" {
		return nil
	}
	var found *Token
	sum := sha256.Sum256([]byte(secret))
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

// guarded reports whether the path tells nothing without a token: not even that it is unknown, or that a method is wrong.
func guarded(path string) bool {
	return below(path, "/jobscheduler") || below(path, "/api") || below(path, "/tasks")
}

func below(path, root string) bool {
	return strings.HasPrefix(path, root) && (len(path) == len(root) || path[len(root)] == '/')
}
