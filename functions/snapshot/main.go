// Command snapshot is the function that answers objects and their events: GET and POST of order, job, jobChain, task,
// fileBased and object below /jobscheduler/master/api. It also answers for every path that leads nowhere.
package main

import (
	"context"
	"errors"
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

func function(place host.Place, settings config.Settings, s store.Store) host.Function {
	log := config.Logger(os.Stderr, settings.Level)
	j := journal.Open(s, journal.Options{Log: log, Folds: overview.Folds()})
	return host.Function{
		Name: "snapshot",
		HTTP: api.New(api.Options{
			Tokens: settings.Tokens, Log: log, Metrics: place.Metrics,
			MaxWait: place.MaxWait, MaxAnswer: place.MaxAnswer, CanStream: place.Streams,
		}, api.Objects(j), api.Operations(api.Probes{Ready: s.Ping})),
		Drain: func() { _ = j.Close() }, // waiting requests end; Close reports errors
		Close: func() error { return errors.Join(j.Close(), s.Close()) },
		Log:   log,
	}
}
