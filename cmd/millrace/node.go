package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/api/prom"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/store/pebble"
)

// How often the upkeep runs. An embedded store costs nothing to look at, so that what retention promises is kept to the
// second; elsewhere each look is paid for.
const (
	upkeepEmbedded = time.Second
	upkeepShared   = time.Minute
)

// node is all of Millrace in one process.
type node struct {
	store   store.Store
	journal *journal.Journal
	handler http.Handler
	log     *slog.Logger
}

// openNode opens the store that the settings name and puts the engine and the API on it.
func openNode(ctx context.Context, settings config.Settings, log *slog.Logger) (*node, error) {
	opened, err := config.OpenStore(ctx, settings.Store, config.Openers{
		"pebble": func(_ context.Context, dir string) (store.Store, error) {
			return pebble.Open(dir, pebble.Options{Log: log})
		},
		"dynamodb": func(ctx context.Context, prefix string) (store.Store, error) {
			return dynamo.Open(ctx, dynamo.Options{Prefix: prefix})
		},
	})
	if err != nil {
		return nil, err
	}
	n := &node{store: opened, log: log}
	n.journal = journal.Open(opened, journal.Options{
		Log: log, Folds: overview.Folds(), Retention: journal.Retention(settings.Retention),
	})
	n.handler = n.api(settings)
	return n, nil
}

func (n *node) api(settings config.Settings) http.Handler {
	metrics := prom.New()
	return api.New(api.Options{Tokens: settings.Tokens, Log: n.log, Metrics: metrics, CanStream: true, Version: version()},
		api.Emit(n.journal), api.Events(n.journal), api.Objects(n.journal),
		api.Operations(api.Probes{Ready: n.store.Ping, Metrics: metrics.Handler()}))
}

// upkeep does the journal's upkeep regularly until ctx ends; it takes the place of a platform's timer.
func (n *node) upkeep(ctx context.Context) {
	every := upkeepShared
	if n.store.Exclusive() {
		every = upkeepEmbedded
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := n.journal.Sweep(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("upkeep failed; it is tried again", "error", err)
		}
	}
}

// close releases everything, the store last.
func (n *node) close() error { return errors.Join(n.journal.Close(), n.store.Close()) }

// serve listens, says so by ready, and serves until ctx ends and what is under way has been answered.
func (n *node) serve(ctx context.Context, address string, ready func(url string)) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	ready("http://" + listener.Addr().String())
	upkeep, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.upkeep(upkeep)
	}()
	err = host.Server{Handler: n.handler, Log: n.log, OnDrain: n.drain}.Serve(ctx, listener)
	stop()
	<-done
	return err
}

// drain ends waiting followers; they come back to whoever takes over.
func (n *node) drain() {
	if err := n.journal.Close(); err != nil {
		n.log.Warn("followers may be cut off", "error", fmt.Errorf("close the journal: %w", err))
	}
}
