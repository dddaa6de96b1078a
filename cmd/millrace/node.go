package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/api/prom"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/metric"
	"github.com/millrace/millrace/shared/notifier/local"
	pgnotifier "github.com/millrace/millrace/shared/notifier/postgres"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/store/pebble"
	pgstore "github.com/millrace/millrace/shared/store/postgres"
	"github.com/millrace/millrace/shared/store/tally"
	"github.com/millrace/millrace/shared/web"
	"github.com/millrace/millrace/shared/worker"
	"github.com/millrace/millrace/shared/worker/lambda"
)

// How often the upkeep runs. An embedded store costs nothing to read, so that retention is kept to the second; elsewhere each
// read is paid for.
const (
	upkeepEmbedded   = time.Second
	upkeepShared     = time.Minute
	upkeepDatabase   = 5 * time.Second // where a look costs no money
	upkeepUnnotified = 2 * time.Second // where other processes cannot notify this one, since no notifier is set
)

// node is all of Millrace in one process.
type node struct {
	*service.Tasks
	calls    *tally.Store // the store, counted
	handler  http.Handler
	database *pgstore.Store  // nil unless the store is in PostgreSQL
	failed   <-chan struct{} // closed when the store can no longer be used; nil where that cannot happen
	life     life
}

var errFailed = errors.New("the store has failed and must be opened by a new process: see the log, and start again")

// openNode opens the store and the notifier that the settings name, and builds the engine and the API on them.
func openNode(ctx context.Context, settings config.Settings, log *slog.Logger) (*node, error) {
	if err := notifiers.Check(settings.Notifier); err != nil { // before the store is made
		return nil, err
	}
	n := &node{}
	opened, err := config.OpenStore(ctx, settings.Store, rigged(n.stores(log)))
	if _, is := errors.AsType[*config.Mistake](err); is {
		err = fmt.Errorf("--store (MILLRACE_STORE): %w", err)
	}
	if err != nil {
		return nil, err
	}
	n.calls = tally.New(opened)
	s := service.New(host.Place{Env: os.Getenv, Streams: true}, settings, n.calls, log)
	if err := s.DemandLayout(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	b, err := config.OpenNotifier(ctx, settings.Notifier, notifiers)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	n.Tasks = service.NewTasks(s, b)
	n.handler = n.api()
	return n, nil
}

// notifiers are those that the program can open.
var notifiers = config.Notifiers{"local": local.Open, "sqs": sqs.OpenQueue, "postgres": pgnotifier.OpenURL}

func (n *node) stores(log *slog.Logger) config.Openers {
	return config.Openers{
		"pebble": func(_ context.Context, dir string) (store.Store, error) {
			s, err := pebble.Open(dir, pebble.Options{Log: log})
			if err != nil {
				return nil, err
			}
			n.failed = s.Failed()
			return s, nil
		},
		"dynamodb": dynamo.OpenPrefix,
		"postgres": func(ctx context.Context, place string) (store.Store, error) {
			s, err := pgstore.Open(ctx, pgstore.Options{URL: "postgres:" + place, Log: log})
			if err != nil {
				return nil, err
			}
			n.database = s
			return s, nil
		},
	}
}

func (n *node) api() http.Handler {
	metrics := prom.New(config.Redacted(n.Settings.Store))
	metrics.Clock(n.Clock.Offset)
	metrics.Calls(n.calls.Calls)
	n.watched(metrics)
	operations := api.New(api.Options{Accept: n.Settings.Accepted, Log: n.Log, Metrics: metrics, CanStream: true, Version: version(), Missing: projection.Unmade(), Stopping: n.Stopping, Origins: n.Settings.CORS.Origins},
		append(n.Resources(), api.Operations(api.Probes{Ready: n.Ready, Metrics: metrics.Handler(), OpenMetrics: n.Settings.Metrics.Open}))...)
	shown := n.Settings.Dashboard
	return web.New(web.Options{
		API: operations, Tokens: n.Settings.Accepted, Store: n.Store, Journal: n.Journal, Log: n.Log, Mask: shown.Mask, Proxies: shown.Proxies,
	})
}

// watched adds the measurements of the whole deployment.
func (n *node) watched(m *prom.Metrics) {
	m.Gauge(metric.OldestWait, func() float64 { return n.Queue.Measures().OldestWait.Seconds() })
	m.Gauge(metric.DueLag, func() float64 { return n.Queue.Measures().DueLag.Seconds() })
	m.Counter(metric.LeasesLost, func() float64 { return float64(n.Queue.Measures().LeasesLost) })
	m.Counter(metric.Misfires, func() float64 { return float64(n.Schedules.Late()) })
}

// pool returns the workers of this process, whose callbacks go to url. When it is told to stop, running tasks may go on for three
// eighths of the drain time, and have as much again to stop; the rest is for giving them back.
func (n *node) pool(ctx context.Context, url string) (*worker.Pool, error) {
	webhooks, err := n.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	runner := worker.NewRunner(worker.Options{
		Engine: n.Queue, Definitions: n.Definitions, URL: url, Log: n.Log, LastGrace: n.Settings.Drain * 3 / 8,
		Targets: worker.Targets{
			HTTP: webhooks, Command: worker.Command{LastGrace: n.Settings.Drain / 4}, Lambda: &lambda.Target{}, Go: worker.Functions{},
		},
	})
	return worker.NewPool(worker.PoolOptions{
		Runner: runner, Notifier: n.Notifier, Workers: n.Settings.Workers, Claimer: queue.Claimer{Instance: n.Instance()}, Grace: n.Settings.Drain * 3 / 8,
	}), nil
}

// silent returns a logger that discards everything.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// upkeep does until ctx ends what on Lambda the functions sweep and cron do at each tick.
func (n *node) upkeep(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { n.Schedules.Run(ctx) })
	group.Go(func() { n.Orders.Run(ctx) })
	group.Go(func() {
		fileorder.Open(fileorder.Options{Orders: n.Orders, Definitions: n.Definitions, Log: n.Log}).Run(ctx)
	})
	if n.Store.Exclusive() {
		group.Go(func() { n.Queue.Run(ctx) }) // it knows itself when something falls due
		every(ctx, upkeepEmbedded, n.sweepJournal)
		return
	}
	pause := upkeepShared
	switch {
	case n.Settings.Notifier == "":
		pause = upkeepUnnotified
	case strings.HasPrefix(n.Settings.Store, "postgres:"):
		pause = upkeepDatabase
	}
	group.Go(func() {
		n.sweepTasks(ctx) // there may be no notification of tasks that fall due before the first pause is over
		every(ctx, pause, n.sweepTasks)
	})
	every(ctx, upkeepShared, n.sweepJournal)
}

// every calls do at an even pace until ctx ends.
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
	if err := n.SweepJournal(ctx); err != nil && ctx.Err() == nil {
		n.Log.Warn("upkeep of the journal failed; it is tried again", "error", err)
	}
}

func (n *node) sweepTasks(ctx context.Context) {
	_, err := n.Queue.Sweep(ctx)
	if err == nil {
		_, err = n.Queue.NotifyDue(ctx, n.Clock.Now().Add(2*upkeepShared))
	}
	if err != nil && ctx.Err() == nil {
		n.Log.Warn("upkeep of tasks failed; it is tried again", "error", err)
	}
}

// run applies the server's own definitions, tells that it runs, calls ready when it can serve, and runs tasks and the upkeep until ctx ends.
// When the store has failed it calls end: the process ends, for its supervisor to start it again.
func (n *node) run(ctx context.Context, end context.CancelCauseFunc, listening net.Addr, ready func()) error {
	if err := n.Declare(ctx); err != nil {
		return err
	}
	pool, err := n.pool(ctx, n.callbackURL(listening))
	if err != nil {
		return err
	}
	n.begin(ctx)
	ready()
	var group sync.WaitGroup
	group.Go(func() { n.upkeep(ctx) })
	group.Go(func() { n.watch(ctx, end) })
	if n.database != nil {
		group.Go(func() { n.database.Drain(ctx, n.deliver) })
	}
	group.Go(func() { tendMemory(ctx) })
	group.Go(func() {
		if err := pool.Run(ctx); err != nil {
			n.Log.Error("tasks are no longer run", "error", err)
		}
	})
	group.Wait()
	return nil
}

// watch ends the serving when the store has failed.
func (n *node) watch(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-n.failed:
		end(errFailed)
	case <-ctx.Done():
	}
}
