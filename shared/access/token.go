package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
		return sum, fmt.Errorf("access: a sha256 has 64 hexadecimal digits, not %d", len(text))
	}
	if _, err := hex.Decode(sum[:], []byte(text)); err != nil {
		return sum, fmt.Errorf("access: sha256: %w", err)
	}
	return sum, nil
}
