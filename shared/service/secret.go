package service

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// secretKey is the key of the generated signing secret.
var secretKey = store.Key{Table: store.Definitions, Partition: "secret", Sort: "signing"}

// signingSecret returns the secret that webhooks are signed with: given, if it is not empty; otherwise the one in the
// store, which the first call generates.
func signingSecret(ctx context.Context, s store.Store, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	items, err := s.Get(ctx, secretKey)
	if err != nil {
		return "", fmt.Errorf("service: read the signing secret: %w", err)
	}
	if items[0] != nil {
		return string(items[0].Value), nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	made := "whsec_" + base64.StdEncoding.EncodeToString(key)
	// Race: several processes may start at once; the first one's secret is kept.
	op := store.Put(store.Item{Key: secretKey, Version: 1, Value: []byte(made)}, store.Absent)
	err = s.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{op}})
	if store.AsConflict(err) != nil {
		items, err = s.Get(ctx, secretKey)
		if err == nil && items[0] != nil {
			return string(items[0].Value), nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("service: keep the signing secret: %w", err)
	}
	return made, nil
}
