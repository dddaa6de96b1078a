package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
)

// Refresh returns the set in force.
func (d *declared) Refresh(ctx context.Context) (*definition.Set, error) { return d.Current(ctx) }

// A schedule of an order starts it at each of its times; the order is there between them, and a start is taken back with the
// schedule's suspension.
func TestAScheduleStartsItsOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, definition.Schedule{Name: "o", Cron: "0 0 * * * ?", Order: &definition.ScheduledOrder{Chain: "/c", ID: "hourly"}})
	b.sets.set.Sources = nil
	b.sets.set.JobChains = []definition.JobChain{{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: job}, {ID: "end"}}}}
	orders := order.Open(order.Options{Store: b.store, Definitions: b.sets, Now: b.clock})
	b.queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: b.sets, Now: b.clock, Steps: orders})
	orders.Use(b.queue)
	b.Scheduler = schedule.Open(schedule.Options{
		Store: b.store, Journal: b.journal, Queue: b.queue, Orders: orders, Definitions: b.sets, Now: b.clock,
	})
	is := func(state string) {
		t.Helper()
		o, err := orders.Get(t.Context(), "/c", "hourly")
		if err != nil || o.State.Type != state {
			t.Errorf("the order is %v, %v, want %s", o.State, err, state)
		}
	}
	b.look()
	if _, err := orders.Get(t.Context(), "/c", "hourly"); !errors.Is(err, order.ErrNoOrder) {
		t.Errorf("there is an order an hour before its time: %v", err)
	}
	for range 3 {
		b.now = b.now.Truncate(time.Hour).Add(59*time.Minute + 30*time.Second)
		b.look()
		b.look()
		is(projection.Planned)
		b.now = b.now.Add(30 * time.Second)
		leases, err := b.queue.Claim(t.Context(), queue.Claimer{Instance: "i"}, 2)
		if err != nil || len(leases) != 1 {
			t.Fatalf("%d steps, %v, want one", len(leases), err)
		}
		if _, err := b.queue.Complete(t.Context(), leases[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
			t.Fatal(err)
		}
		is(projection.NotPlanned)
	}
	b.now = b.now.Add(59*time.Minute + 30*time.Second)
	b.look()
	is(projection.Planned)
	if err := b.Suspend(t.Context(), "o", true); err != nil {
		t.Fatal(err)
	}
	is(projection.NotPlanned)
	if _, err := b.Trigger(t.Context(), nil, "o"); err != nil {
		t.Fatal(err)
	}
	is(projection.Due)
}
