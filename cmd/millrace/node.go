package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/api/prom"
	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/local"
	"github.com/millrace/millrace/shared/bell/sqs"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/topology"
	"github.com/millrace/millrace/shared/worker"
	"github.com/millrace/millrace/shared/worker/lambda"
)

// How often the upkeep runs. An embedded store costs nothing to look at, so that what retention promises is kept to the
// second; elsewhere each look is paid for.
const (
	upkeepEmbedded = time.Second
	upkeepShared   = time.Minute
	upkeepUnrung   = 2 * time.Second // where other processes cannot ring this one's bell
)

// node is all of Millrace in one process.
type node struct {
	store       store.Store
	journal     *journal.Journal
	definitions *definition.Book
	bell        bell.Line
	queue       *queue.Queue
	schedules   *schedule.Scheduler
	settings    config.Settings
	handler     http.Handler
	log         *slog.Logger
	failed      <-chan struct{} // closed when the store can no longer be used; nil where that cannot be
}

var errFailed = errors.New("the store has failed and must be opened by a new process: see the log, and start again")

// openNode opens the store and the bell that the settings name and puts the engine and the API on them.
func openNode(ctx context.Context, settings config.Settings, log *slog.Logger) (*node, error) {
	n := &node{settings: settings, log: log}
	var err error
	if n.store, err = config.OpenStore(ctx, settings.Store, n.stores()); err != nil {
		return nil, err
	}
	n.bell, err = config.OpenBell(ctx, settings.Bell, config.Bells{"local": local.Open, "sqs": sqs.OpenQueue})
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.journal = journal.Open(n.store, journal.Options{
		Log: log, Folds: overview.Folds(), Retention: journal.Retention(settings.Retention),
	})
	n.definitions = definition.OpenBook(definition.BookOptions{Store: n.store, Journal: n.journal})
	n.queue = queue.Open(queue.Options{
		Store: n.store, Journal: n.journal, Definitions: n.definitions, Bell: n.bell, Log: log,
		Named: topology.Open(topology.Options{Store: n.store}).Named, History: settings.History.Age,
	})
	n.schedules = schedule.Open(schedule.Options{
		Store: n.store, Journal: n.journal, Queue: n.queue, Definitions: n.definitions, Log: log,
	})
	n.handler = n.api()
	return n, nil
}

func (n *node) stores() config.Openers {
	return config.Openers{
		"pebble": func(_ context.Context, dir string) (store.Store, error) {
			s, err := pebble.Open(dir, pebble.Options{Log: n.log})
			if err != nil {
				return nil, err
			}
			n.failed = s.Failed()
			return s, nil
		},
		"dynamodb": dynamo.OpenPrefix,
	}
}

func (n *node) api() http.Handler {
	metrics := prom.New()
	return api.New(api.Options{Tokens: n.settings.Tokens, Log: n.log, Metrics: metrics, CanStream: true, Version: version()},
		api.Emit(n.journal), api.Events(n.journal), api.Objects(n.journal),
		api.Enqueue(n.queue, n.definitions), api.Tasks(n.queue, n.definitions), api.Handlers(n.queue, n.definitions), api.Jobs(n.queue, n.definitions), api.Queues(n.queue, n.definitions),
		api.Define(n.definitions),
		n.streams(), api.Instances(topology.Open(topology.Options{Store: n.store}), n.queue),
		api.Schedules(n.schedules, n.queue, n.definitions), api.Cron(),
		api.Operations(api.Probes{Ready: n.ready, Metrics: metrics.Handler()}))
}

func (n *node) ready(ctx context.Context) error {
	return errors.Join(n.store.Ping(ctx), n.bell.Ping(ctx))
}

// declare applies the definitions of the server's own file.
func (n *node) declare(ctx context.Context) error {
	if n.settings.Definitions == nil {
		return nil
	}
	changes, err := n.definitions.ApplyFile(ctx, n.settings.Definitions)
	if err != nil {
		return err
	}
	if !changes.Empty() {
		n.log.Info("definitions were applied",
			"added", len(changes.Added), "replaced", len(changes.Replaced), "removed", len(changes.Removed))
	}
	return nil
}

// pool answers the workers of this process, whose callbacks go to url.
func (n *node) pool(ctx context.Context, url string) (*worker.Pool, error) {
	secret, err := service.SigningSecret(ctx, n.store, os.Getenv("MILLRACE_SIGNING_SECRET"))
	if err != nil {
		return nil, err
	}
	webhooks, err := worker.NewHTTP(worker.HTTPOptions{Secret: secret, AllowPrivate: n.settings.Targets.AllowPrivate})
	if err != nil {
		return nil, err
	}
	runner := worker.NewRunner(worker.Options{
		Engine: n.queue, Definitions: n.definitions, URL: url, Log: n.log,
		Targets: worker.Targets{HTTP: webhooks, Command: worker.Command{}, Lambda: &lambda.Target{}, Go: worker.Functions{}},
	})
	return worker.NewPool(worker.PoolOptions{
		Runner: runner, Bell: n.bell, Workers: n.settings.Workers, Claimer: queue.Claimer{Instance: instance()},
	}), nil
}

// instance names this process among those that run tasks.
func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// upkeep does regularly what functions do elsewhere when a timer of the platform tells them, until ctx ends.
func (n *node) upkeep(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { n.schedules.Run(ctx) })
	if n.store.Exclusive() {
		group.Go(func() { n.queue.Run(ctx) }) // it knows when there is something to do
		every(ctx, upkeepEmbedded, n.sweepJournal)
		return
	}
	pause := upkeepShared
	if n.settings.Bell == "" {
		pause = upkeepUnrung
	}
	group.Go(func() { every(ctx, pause, n.sweepTasks) })
	every(ctx, upkeepShared, n.sweepJournal)
}

// every does something at an even pace until ctx ends.
func every(ctx context.Context, pause time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do(ctx)
		}
	}
}

func (n *node) sweepJournal(ctx context.Context) {
	if _, err := n.journal.Sweep(ctx); err != nil && ctx.Err() == nil {
		n.log.Warn("upkeep of the journal failed; it is tried again", "error", err)
	}
}

func (n *node) sweepTasks(ctx context.Context) {
	_, err := n.queue.Sweep(ctx)
	if err == nil {
		_, err = n.queue.RingDue(ctx, time.Now().Add(2*upkeepShared))
	}
	if err != nil && ctx.Err() == nil {
		n.log.Warn("upkeep of tasks failed; it is tried again", "error", err)
	}
}

// close releases everything, the store last.
func (n *node) close() error {
	return errors.Join(n.queue.Close(), n.bell.Close(), n.journal.Close(), n.store.Close())
}

// serve listens, says so by ready, and serves until ctx ends and what is under way has been answered. A store that has
// failed ends it too, with an error: whoever watches over the process starts it again.
func (n *node) serve(ctx context.Context, address string, ready func(url string)) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	if err := n.declare(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	pool, err := n.pool(ctx, cmp.Or(os.Getenv("MILLRACE_URL"), url))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ready(url)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	group.Go(func() { n.upkeep(ctx) })
	group.Go(func() { n.watch(ctx, cancel) })
	group.Go(func() {
		if err := pool.Run(ctx); err != nil {
			n.log.Error("tasks are no longer run", "error", err)
		}
	})
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

// drain ends waiting followers and instances; they come back to whoever takes over.
func (n *node) drain() {
	n.queue.Drain()
	if err := n.journal.Close(); err != nil {
		n.log.Warn("followers may be cut off", "error", fmt.Errorf("close the journal: %w", err))
	}
}
