package service

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/order"
)

// MainWaking is [Main] of a function that wakes, by the notifier that its environment names, whoever lets the orders go on that wait for
// the events it writes. Without a notifier they wait for the sweep.
func MainWaking(stores config.Openers, notifiers config.Notifiers, assemble func(*Service) host.Function) {
	host.Main(func(ctx context.Context, place host.Place) (host.Function, error) {
		s, err := open(ctx, place, stores)
		if err != nil {
			return host.Function{}, err
		}
		end := s.Close
		if s.Settings.Notifier != "" {
			n, err := config.OpenNotifier(ctx, s.Settings.Notifier, notifiers)
			if err != nil {
				return host.Function{}, errors.Join(err, s.Close())
			}
			s.wakes(n)
			end = func() error { return errors.Join(s.Close(), n.Close()) }
		}
		if err := s.DemandLayout(ctx); err != nil {
			return host.Function{}, errors.Join(err, end())
		}
		f := assemble(s)
		f.Close = end
		return f, nil
	})
}

// wakes has the events that the process writes wake whoever lets the orders go on that wait for them.
func (s *Service) wakes(n notifier.Notifier) {
	s.Journal.Announce(order.NewEar(s.Store, n, s.Log).Hear)
}

// wakes has the process, which has no [order.Engine.Run], wake another one for orders.
func (t *Tasks) wakes() {
	t.Service.wakes(t.Notifier)
	t.Orders.SweepAfterWrites()
	t.Orders.WakeBy(func(ctx context.Context) { order.Wake(ctx, t.Notifier, time.Time{}, t.Log) })
}
