// Command sweep is the function that keeps the journal in order at each tick: it stores a snapshot generation when one is due,
// moves the floor that retention sets, and removes slots that were evicted long ago.
package main

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() { host.Main(build) }

func build(ctx context.Context, place host.Place) (host.Function, error) {
	settings, err := config.Load(place.Env)
	if err != nil {
		return host.Function{}, err
	}
	opened, err := config.OpenStore(ctx, settings.Store, config.Openers{
		"dynamodb": func(ctx context.Context, prefix string) (store.Store, error) {
			return dynamo.Open(ctx, dynamo.Options{Prefix: prefix})
		},
	})
	if err != nil {
		return host.Function{}, err
	}
	return function(place, settings, opened), nil
}

func function(_ host.Place, settings config.Settings, s store.Store) host.Function {
	log := config.Logger(os.Stderr, settings.Level)
	j := journal.Open(s, journal.Options{
		Log: log, Folds: overview.Folds(), Retention: journal.Retention(settings.Retention),
	})
	operations := api.New(api.Options{Tokens: settings.Tokens, Log: log}, api.Operations(api.Probes{Ready: s.Ping}))
	return host.Function{
		Name: "sweep",
		HTTP: operations,
		Tick: func(ctx context.Context, _ host.Tick) error {
			_, err := j.Sweep(ctx)
			return err
		},
		Guard: func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) },
		Close: func() error { return errors.Join(j.Close(), s.Close()) },
		Log:   log,
	}
}
