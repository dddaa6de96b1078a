package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
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
	failed  <-chan struct{} // closed when the store can no longer be used; nil where that cannot be
}

var errFailed = errors.New("the store has failed and must be opened by a new process: see the log, and start again")

// openNode opens the store that the settings name and puts the engine and the API on it.
func openNode(ctx context.Context, settings config.Settings, log *slog.Logger) (*node, error) {
	n := &node{log: log}
	opened, err := config.OpenStore(ctx, settings.Store, config.Openers{
		"pebble": func(_ context.Context, dir string) (store.Store, error) {
			s, err := pebble.Open(dir, pebble.Options{Log: log})
			if err != nil {
				return nil, err
			}
			n.failed = s.Failed()
			return s, nil
		},
		"dynamodb": dynamo.OpenPrefix,
	})
	if err != nil {
		return nil, err
	}
	n.store = opened
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

// serve listens, says so by ready, and serves until ctx ends and what is under way has been answered. A store that has
// failed ends it too, with an error: whoever watches over the process starts it again.
func (n *node) serve(ctx context.Context, address string, ready func(url string)) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	ready("http://" + listener.Addr().String())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	group.Go(func() { n.upkeep(ctx) })
	group.Go(func() { n.watch(ctx, cancel) })
	err = host.Server{Handler: n.handler, Log: n.log, OnDrain: n.drain}.Serve(ctx, listener)
	if errors.Is(context.Cause(ctx), errFailed) {
		err = errors.Join(errFailed, err)
	}
	cancel(nil)
	group.Wait()
	return err
}

// watch ends the serving when the store has failed.
func (n *node) watch(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-n.failed:
		end(errFailed)
	case <-ctx.Done():
	}
}

// drain ends waiting followers; they come back to whoever takes over.
func (n *node) drain() {
	if err := n.journal.Close(); err != nil {
		n.log.Warn("followers may be cut off", "error", fmt.Errorf("close the journal: %w", err))
	}
}
