//go:build faults

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	shared "github.com/millrace/millrace/shared/store/remote"
)

// faultsVariable names the environment variable with the faults between the engine and its store, as JSON of [faulty.Faults].
const faultsVariable = "MILLRACE_FAULTS"

// rigged returns the stores with the faults that the environment names, and one more: remote:HOST:PORT. Only programs built for
// tests have it.
func rigged(stores config.Openers) config.Openers {
	stores["remote"] = func(_ context.Context, place string) (store.Store, error) { return shared.Open(place), nil }
	all := config.Openers{}
	for scheme, open := range stores {
		all[scheme] = func(ctx context.Context, place string) (store.Store, error) {
			var faults faulty.Faults
			if text := os.Getenv(faultsVariable); text != "" {
				if err := json.Unmarshal([]byte(text), &faults); err != nil {
					return nil, fmt.Errorf("%s: %w", faultsVariable, err)
				}
			}
			s, err := open(ctx, place)
			if err != nil {
				return nil, err
			}
			return faulty.New(s, faults), nil
		}
	}
	return all
}
