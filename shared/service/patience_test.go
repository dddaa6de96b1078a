package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// failing is a store whose call number at, of those that read items or write, fails with err.
type failing struct {
	store.Store
	at  int
	err error
}

func (f *failing) fails() bool { f.at--; return f.at == 0 }

func (f *failing) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if f.fails() {
		return nil, f.err
	}
	return f.Store.Get(ctx, keys...)
}

func (f *failing) Write(ctx context.Context, w store.Write) error {
	if f.fails() {
		return f.err
	}
	return f.Store.Write(ctx, w)
}

// A start gets over one call that meets a busy or unavailable store, whichever it is.
func TestAStartGetsOverAMomentOfABusyStore(t *testing.T) {
	t.Parallel()
	for _, err := range []error{store.ErrBusy, store.ErrUnavailable} {
		for at := range 6 {
			t.Run(fmt.Sprintf("%v at %d", err, at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					settings := config.Settings{Definitions: &definition.Set{Queues: []definition.Queue{{Name: "q"}}}}
					s := &failing{Store: memory.New(memory.Options{}), at: at, err: err}
					place := host.Place{Env: func(string) string { return "" }}
					tasks := service.NewTasks(service.New(place, settings, s, slog.New(slog.DiscardHandler)), nil)
					defer tasks.Service.Close()
					if err := tasks.Declare(t.Context()); err != nil {
						t.Errorf("Declare = %v", err)
					}
					if _, err := tasks.Webhooks(t.Context()); err != nil {
						t.Errorf("Webhooks = %v", err)
					}
				})
			})
		}
	}
}
