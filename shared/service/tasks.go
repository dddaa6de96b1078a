package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/topology"
)

// Tasks is a service with what is declared and the queue of tasks on its store.
type Tasks struct {
	*Service
	Bell        bell.Line
	Definitions *definition.Book
	Queue       *queue.Queue
	Schedules   *schedule.Scheduler
}

// NewTasks answers the queue over a service. The service and the bell belong to it.
func NewTasks(s *Service, b bell.Line) *Tasks {
	t := &Tasks{Service: s, Bell: b}
	t.Definitions = definition.OpenBook(definition.BookOptions{Store: s.Store, Journal: s.Journal})
	t.Queue = queue.Open(queue.Options{
		Store: s.Store, Journal: s.Journal, Definitions: t.Definitions, Bell: b, Log: s.Log,
		Named: topology.Open(topology.Options{Store: s.Store}).Named, History: s.Settings.History.Age,
	})
	t.Schedules = schedule.Open(schedule.Options{
		Store: s.Store, Journal: s.Journal, Queue: t.Queue, Definitions: t.Definitions, Log: s.Log,
	})
	return t
}

// Declare applies the definitions of the function's own configuration, if they differ from those that were applied last.
func (t *Tasks) Declare(ctx context.Context) error {
	if t.Settings.Definitions == nil {
		return nil
	}
	_, err := t.Definitions.ApplyFile(ctx, t.Settings.Definitions)
	return err
}

// MainTasks runs a function that has to do with tasks, as [Main] does.
func MainTasks(stores config.Openers, bells config.Bells, assemble func(context.Context, *Tasks) (host.Function, error)) {
	host.Main(func(ctx context.Context, place host.Place) (host.Function, error) {
		s, err := open(ctx, place, stores)
		if err != nil {
			return host.Function{}, err
		}
		b, err := config.OpenBell(ctx, s.Settings.Bell, bells)
		if err != nil {
			return host.Function{}, errors.Join(err, s.close())
		}
		tasks := NewTasks(s, b)
		f, err := assemble(ctx, tasks)
		if err != nil {
			return host.Function{}, errors.Join(err, tasks.close())
		}
		return f, nil
	})
}

// Function answers a function of that name that serves the handler.
func (t *Tasks) Function(name string, handler http.Handler) host.Function {
	f := t.Service.Function(name, handler)
	f.Drain, f.Close = t.drain, t.close
	return f
}

// API answers these resources and health checks over HTTP; it is ready when both the store and the bell are.
func (t *Tasks) API(resources ...api.Resource) *api.API {
	return t.api(func(ctx context.Context) error { return errors.Join(t.Store.Ping(ctx), t.Bell.Ping(ctx)) }, resources)
}

// URL answers where clients reach the API, without a slash at its end; empty where MILLRACE_URL does not say.
func (t *Tasks) URL() string { return strings.TrimSuffix(t.Place.Env("MILLRACE_URL"), "/") }

// Instance names this process among those that run tasks.
func (t *Tasks) Instance() string {
	if stream := t.Place.Env("AWS_LAMBDA_LOG_STREAM_NAME"); stream != "" {
		return stream // where its log is
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// drain ends waiting requests, those for tasks too.
func (t *Tasks) drain() {
	t.Queue.Drain()
	t.Service.drain()
}

func (t *Tasks) close() error { return errors.Join(t.Queue.Close(), t.Service.close(), t.Bell.Close()) }
