package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/metric"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/worker"
)

// Tasks is a service with the definitions, the queue of tasks and its schedules on the same store. Its fields are set by
// [NewTasks].
type Tasks struct {
	*Service
	Clock       *clock.Watch
	Notifier    notifier.Line
	Definitions *definition.Catalog
	Queue       *queue.Queue
	Schedules   *schedule.Scheduler
	Orders      *order.Engine
	Instances   *membership.Membership
	Exchanges   *exchanges.Exchanges
}

// NewTasks returns the queue and its parts over a service. It closes the service and the notifier.
func NewTasks(s *Service, b notifier.Line) *Tasks {
	watch := clock.Open(s.Store, clock.Options{Log: s.Log, Compared: s.measured})
	t := &Tasks{Service: s, Clock: watch, Notifier: b, Instances: membership.Open(membership.Options{Store: s.Store, Clock: watch})}
	t.Definitions = definition.OpenCatalog(definition.CatalogOptions{Store: s.Store, Journal: s.Journal, Changed: t.redeclared})
	t.Orders = order.Open(order.Options{Store: s.Store, Journal: s.Journal, Definitions: t.Definitions, Clock: watch, Log: s.Log})
	t.Queue = queue.Open(queue.Options{
		Store: s.Store, Journal: s.Journal, Definitions: t.Definitions, Notifier: b, Clock: watch, Log: s.Log,
		Instances: t.Instances.Claimers, Heard: t.Instances.Heard, Steps: t.Orders, History: s.Settings.History.Age,
		OnePart: config.IsPostgres(s.Settings.Store), Lasting: !s.Place.Lambda, Parts: s.Settings.Parts,
	})
	t.Orders.Use(t.Queue)
	t.Exchanges = exchanges.Open(exchanges.Options{
		Store: s.Store, Members: t.Instances, Queue: t.Queue, Log: s.Log, Apart: strings.HasPrefix(s.Settings.Store, "dynamodb:"),
	})
	t.Schedules = schedule.Open(schedule.Options{
		Store: s.Store, Journal: s.Journal, Queue: t.Queue, Orders: t.Orders, Definitions: t.Definitions, Clock: watch, Log: s.Log,
	})
	return t
}

// measured counts a comparison of the clock, if the host collects measurements.
func (s *Service) measured(offset time.Duration) {
	if s.Place.Metrics == nil {
		return
	}
	outcome := "right"
	if offset.Abs() > clock.Tolerance {
		outcome = "off"
	}
	s.Place.Metrics.Outcome("clock", outcome, 0)
}

// Measure publishes a measurement of this deployment, if the host collects measurements.
func (s *Service) Measure(of metric.Metric, value float64) {
	if s.Place.Metrics != nil {
		s.Place.Metrics.Measure(of, value)
	}
}

// redeclared updates the schedules and the queue after a change of definitions.
func (t *Tasks) redeclared(ctx context.Context, c definition.Changes) {
	if c.Schedules() {
		if err := t.Schedules.Redeclared(context.WithoutCancel(ctx)); err != nil {
			t.Log.Warn("schedules follow the new definitions late", "error", err)
		}
	}
	if c.OnlySchedules() {
		return // schedules do not affect waiting tasks
	}
	if err := t.Queue.Redeclared(context.WithoutCancel(ctx)); err != nil {
		t.Log.Warn("tasks that wait follow the new definitions late", "error", err)
	}
}

// fromConfiguration is who acts where a process applies the definitions of its configuration.
const fromConfiguration = "configuration"

// Declare applies the definitions of the process's configuration, if they differ from those that were applied last; their events say
// that "configuration" did it. While the store is busy or away, it tries for 15 s.
func (t *Tasks) Declare(ctx context.Context) error {
	if t.Settings.Definitions == nil {
		return nil
	}
	ctx = journal.WithActor(ctx, fromConfiguration)
	var changes definition.Changes
	err := patiently(ctx, t.Log, "apply definitions", func() (err error) {
		changes, err = t.Definitions.ApplyFile(ctx, t.Settings.Definitions)
		return err
	})
	if err != nil {
		return err
	}
	if !changes.Empty() {
		t.Log.Info("definitions were applied",
			"added", len(changes.Added), "replaced", len(changes.Replaced), "removed", len(changes.Removed))
	}
	return nil
}

// Webhooks returns the target for tasks that are sent to other servers. It signs with the deployment's secret.
func (t *Tasks) Webhooks(ctx context.Context) (*worker.HTTP, error) {
	secret := cmp.Or(t.Settings.Secrets.Signing(), t.Settings.SigningSecret)
	err := patiently(ctx, t.Log, "read the signing secret", func() (err error) {
		secret, err = signingSecret(ctx, t.Store, secret)
		return err
	})
	if err != nil {
		return nil, err
	}
	return worker.NewHTTP(worker.HTTPOptions{Secret: secret, Current: t.Settings.Secrets.Signing, AllowPrivate: t.Settings.Targets.AllowPrivate})
}

// MainTasks runs a function that needs [Tasks], as [Main] does for others.
func MainTasks(stores config.Openers, notifiers config.Notifiers, assemble func(context.Context, *Tasks) (host.Function, error)) {
	host.Main(func(ctx context.Context, place host.Place) (host.Function, error) {
		s, err := open(ctx, place, stores)
		if err != nil {
			return host.Function{}, err
		}
		b, err := config.OpenNotifier(ctx, s.Settings.Notifier, notifiers)
		if err != nil {
			return host.Function{}, errors.Join(err, s.Close())
		}
		if err := s.DemandLayout(ctx); err != nil {
			return host.Function{}, errors.Join(err, b.Close(), s.Close())
		}
		tasks := NewTasks(s, b)
		tasks.wakes()
		f, err := assemble(ctx, tasks)
		if err != nil {
			return host.Function{}, errors.Join(err, tasks.Close())
		}
		return f, nil
	})
}

// Function returns a function of that name that serves the handler.
func (t *Tasks) Function(name string, handler http.Handler) host.Function {
	f := t.Service.Function(name, handler)
	f.Drain, f.Close = t.Drain, t.Close
	return f
}

// API returns an API with these resources and health checks. It is ready when the store, the notifier and the clock are.
func (t *Tasks) API(resources ...api.Resource) *api.API {
	return t.api(t.Ready, resources)
}

// Ready returns an error if the store or the notifier cannot be reached, or if this process's clock is off.
func (t *Tasks) Ready(ctx context.Context) error {
	return errors.Join(t.Service.ready(ctx), notReady("what wakes workers cannot be reached", t.Notifier.Ping(ctx)), t.Clock.Check(ctx))
}

// SweepJournal sweeps the journal, unless this process's clock is off, since evicted events are lost for all processes.
func (t *Tasks) SweepJournal(ctx context.Context) error {
	if err := t.Clock.Check(ctx); err != nil {
		return err
	}
	_, err := t.Journal.Sweep(ctx)
	return err
}

// URL returns the address of the API, without a slash at its end; empty if MILLRACE_URL is not set.
func (t *Tasks) URL() string { return strings.TrimSuffix(t.Place.Env("MILLRACE_URL"), "/") }

// Instance returns the name of this process among those that run tasks.
func (t *Tasks) Instance() string {
	if stream := t.Place.Env("AWS_LAMBDA_LOG_STREAM_NAME"); stream != "" {
		return stream // names its log
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Drain ends waiting requests, including those for tasks.
func (t *Tasks) Drain() {
	t.Queue.Drain()
	t.Service.Drain()
}

// Close closes everything, the store and the notifier last.
func (t *Tasks) Close() error {
	return errors.Join(t.Queue.Close(), t.Service.Close(), t.Notifier.Close())
}
