package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/upgrade"
)

// Service is a journal with its store and settings, for one function on one host. Its fields are set by [New].
type Service struct {
	Store    *store.Checked
	Journal  *journal.Journal
	Log      *slog.Logger
	Place    host.Place
	Settings config.Settings

	Stopping context.Context // ends with Drain
	stop     context.CancelFunc
}

// New returns a service over a store, which the service closes.
func New(place host.Place, settings config.Settings, s store.Store, log *slog.Logger) *Service {
	checked := store.NewChecked(s)
	stopping, stop := context.WithCancel(context.Background())
	return &Service{
		Stopping: stopping, stop: stop,
		Store: checked, Log: log, Place: place, Settings: settings,
		Journal: journal.Open(checked, journal.Options{
			Log: log, Folds: projection.Folds(), Retention: journal.Retention(settings.Retention),
			Timing: journal.Timing{RemoveAfter: settings.RemoveAfter},
		}),
	}
}

// Main runs a function: assemble makes it from the service that the environment describes; its store is opened by one of
// openers.
func Main(openers config.Openers, assemble func(*Service) host.Function) {
	host.Main(func(ctx context.Context, place host.Place) (host.Function, error) {
		s, err := open(ctx, place, openers)
		if err != nil {
			return host.Function{}, err
		}
		if err := s.DemandLayout(ctx); err != nil {
			return host.Function{}, errors.Join(err, s.Close())
		}
		return assemble(s), nil
	})
}

// open returns the service that the environment describes.
func open(ctx context.Context, place host.Place, openers config.Openers) (*Service, error) {
	settings, err := config.Load(place.Env)
	if err != nil {
		return nil, err
	}
	opened, err := config.OpenStore(ctx, settings.Store, openers)
	if _, is := errors.AsType[*config.Mistake](err); is {
		err = fmt.Errorf("MILLRACE_STORE: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return New(place, settings, opened, config.Logger(os.Stderr, settings.Level)), nil
}

// DemandLayout returns an error unless the store has the layout that this program reads, see [upgrade.Check]. It is called before anything
// else uses the store, and waits some seconds for one that is busy or away.
func (s *Service) DemandLayout(ctx context.Context) error {
	return patiently(ctx, s.Log, "read the layout", func() error {
		run, err := upgrade.Check(ctx, s.Store, SlotRun(s.Settings.Store))
		s.Journal.Lay(run)
		return err
	})
}

// SlotRun returns how many slots in a row share a partition in a store of that URL, if it begins and processes share it.
func SlotRun(url string) int64 {
	if config.IsPostgres(url) {
		return journal.PageRun
	}
	return journal.ShortRun
}

// Function returns a function of that name that serves the handler.
func (s *Service) Function(name string, handler http.Handler) host.Function {
	return host.Function{Name: name, HTTP: handler, Drain: s.Drain, DrainTime: s.Settings.Drain, Close: s.Close, Log: s.Log}
}

// API returns an API with these resources and health checks. It is ready when the store is.
func (s *Service) API(resources ...api.Resource) *api.API { return s.api(s.ready, resources) }

func (s *Service) ready(ctx context.Context) error {
	return notReady("the store cannot be used", s.Store.Ping(ctx))
}

// notReady returns an error, if it is one, with what everybody may know of it.
func notReady(public string, err error) error {
	if err == nil {
		return nil
	}
	return &api.NotReady{Public: public, Err: err}
}

func (s *Service) api(ready func(context.Context) error, resources []api.Resource) *api.API {
	return api.New(api.Options{
		Accept: s.Settings.Accepted, Log: s.Log, Metrics: s.Place.Metrics,
		MaxWait: s.Place.MaxWait, WaitsCost: s.Place.Lambda, MaxTask: s.Place.MaxTask, MaxAnswer: s.Place.MaxAnswer, CanStream: s.Place.Streams, Missing: projection.Unmade(),
		Stopping: s.Stopping, Origins: s.Settings.CORS.Origins,
	}, append(resources, api.Operations(api.Probes{Ready: ready}))...)
}

// Drain ends the requests that wait for events or follow a log.
func (s *Service) Drain() {
	s.stop()
	if err := s.Journal.Close(); err != nil {
		s.Log.Warn("followers may be cut off", "error", fmt.Errorf("close the journal: %w", err))
	}
}

// Close closes the journal, then the store.
func (s *Service) Close() error { return errors.Join(s.Journal.Close(), s.Store.Close()) }
