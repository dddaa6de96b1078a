package service

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// secretKey is the key of the generated signing secret.
var secretKey = store.Key{Table: store.Definitions, Partition: "secret", Sort: "signing"}

// ErrNoSecret is returned where no process of a deployment has made a signing secret yet.
var ErrNoSecret = errors.New("service: no signing secret has been made: a server makes one at its first start, unless it is given one")

// MadeSecret returns the signing secret that the first process of a deployment has made and kept in the store; [ErrNoSecret] if there is
// none.
func MadeSecret(ctx context.Context, s store.Store) (string, error) {
	items, err := s.Get(ctx, secretKey)
	switch {
	case err != nil:
		return "", fmt.Errorf("service: read the signing secret: %w", err)
	case items[0] == nil:
		return "", ErrNoSecret
	}
	return string(items[0].Value), nil
}

// signingSecret returns the secret that webhooks are signed with: given, if it is not empty; otherwise the one in the
// store, which the first call generates.
func signingSecret(ctx context.Context, s store.Store, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if made, err := MadeSecret(ctx, s); !errors.Is(err, ErrNoSecret) {
		return made, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	made := "whsec_" + base64.StdEncoding.EncodeToString(key)
	// Race: several processes may start at once; the first one's secret is kept.
	op := store.Put(store.Item{Key: secretKey, Version: 1, Value: []byte(made)}, store.Absent)
	err := s.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{op}})
	if store.AsConflict(err) != nil {
		return MadeSecret(ctx, s)
	}
	if err != nil {
		return "", fmt.Errorf("service: keep the signing secret: %w", err)
	}
	return made, nil
}
