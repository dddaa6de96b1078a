package access

import (
	"encoding/base64"
	"errors"
	"strings"
)

// ParseSigningSecret returns the key of a secret that webhooks are signed with, such as of: echo whsec_$(openssl rand -base64 32).
func ParseSigningSecret(text string) ([]byte, error) {
	encoded, prefixed := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("access: a signing secret is whsec_ and the base64 of 24 to 64 bytes")
	}
	return key, nil
}
