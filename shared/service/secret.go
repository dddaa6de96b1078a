package service

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// secretKey is where the signing secret lies that was made at the first start.
var secretKey = store.Key{Table: store.Definitions, Partition: "secret", Sort: "signing"}

// signingSecret answers what webhooks are signed with: given, if it is not empty; otherwise the one in the store, which is
// made when it is first asked for and kept.
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
	// Race: of several processes that start at once, the first one's secret counts.
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
