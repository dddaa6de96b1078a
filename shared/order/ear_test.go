package order_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// heard is a notifier that keeps its notices.
type heard struct {
	notifier.Notifier
	all []notifier.Notice
}

func (h *heard) Notify(_ context.Context, notices ...notifier.Notice) error {
	h.all = append(h.all, notices...)
	return nil
}

// An ear sends a notice for events that orders may wait for, one a second at most, each due when all that it is for is written. Events
// that nobody has ever waited for cost one read a minute.
func TestAnEarWakesForWhatOrdersWaitFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counted := &querying{Store: shared{memory.New(memory.Options{})}}
		b := open(t, counted, waiting(definition.Wait{Event: "ParcelArrived", Path: "/parcels/"}))
		time.Sleep(time.Until(b.now)) // the store goes by this clock
		to := new(heard)
		ear := order.NewEar(counted, to, slog.New(slog.DiscardHandler))
		say := func(kind, key string, want int) {
			t.Helper()
			ear.Hear(t.Context(), []event.Event{{Type: "Other", Key: event.Key{Path: "/parcels/1"}}, {Type: kind, Key: event.Key{Path: key}}})
			if len(to.all) != want {
				t.Errorf("%d notices after %s of %s, want %d", len(to.all), kind, key, want)
			}
		}
		say("ParcelArrived", "/parcels/1", 0)
		before := counted.queries
		say("ParcelArrived", "/parcels/1", 0)
		if counted.queries != before {
			t.Error("events that nobody waits for are looked up each time")
		}
		b.add(nil)
		time.Sleep(time.Minute)
		say("ParcelArrived", "/elsewhere/1", 0)
		say("ParcelLeft", "/parcels/1", 0)
		say("ParcelArrived", "/parcels/1", 1)
		say("ParcelArrived", "/parcels/2", 1)
		if n := to.all[0]; !n.Orders || !n.At.Equal(time.Now().Add(time.Second)) {
			t.Errorf("notice %+v, want one for orders in a second", n)
		}
		time.Sleep(time.Second)
		say("ParcelArrived", "/parcels/3", 2)
	})
}

// querying counts queries.
type querying struct {
	store.Store
	queries int
}

func (q *querying) Query(ctx context.Context, r store.Range) (store.Page, error) {
	q.queries++
	return q.Store.Query(ctx, r)
}

// A notice of orders lets those go on that wait for an event, and carries on acts on many.
func TestWhoIsAwakeDoesWhatIsDue(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "ParcelArrived"}), func(t *testing.T, b *bench) {
		woken := 0
		b.WakeBy(func(context.Context) { woken++ })
		b.add(nil)
		b.emit("ParcelArrived", "/p", "")
		if err := b.Awake(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.is(projection.Due, "B")
		act, err := b.ActOnAll(t.Context(), nil, order.Act{Kind: order.Suspend}, everything)
		if err != nil || woken != 1 {
			t.Fatalf("Act = %+v, %v, and %d were woken, want one", act, err, woken)
		}
		if err := b.Awake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o := b.is(projection.NotPlanned, "B"); len(o.Obstacles) != 1 {
			t.Errorf("%+v, want it suspended", o)
		}
	})
}
