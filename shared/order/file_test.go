package order_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// An order of a file waits at its end without a place of its chain, and finishes once its file has been put away.
func TestAnOrderOfAFileWaitsForIt(t *testing.T) {
	chain := ab()
	chain.MaxOrders, chain.Timeout = 1, time.Hour
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.File, r.PutAway, r.EndNode = true, true, "A" })
		b.add(func(r *order.Request) { r.ID = "2" })
		b.step("A", ok)
		b.want("OrderAdded:A TaskAdded OrderAdded:A OrderWaiting:A:max_orders TaskStarted OrderStarted OrderStepStarted:A " +
			"OrderStepEnded:Success OrderWaiting:A:file OrderNodeChanged:A TaskEnded TaskClosed TaskAdded")
		b.is(projection.WaitingForResource, "A")
		b.now = b.now.Add(2 * time.Hour) // the chain's timeout does not count any more
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		unfiled := func(want int) (orders []order.Unfiled) {
			t.Helper()
			orders, next, err := b.Unfiled(t.Context(), "", 10)
			if len(orders) != want || next != "" || err != nil {
				t.Fatalf("Unfiled = %v, %v, %v, want %d", orders, next, err, want)
			}
			return orders
		}
		b.is(projection.WaitingForResource, "A")
		u := unfiled(1)[0]
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.Resume}, nil) // no step runs again
		b.is(projection.WaitingForResource, "A")
		for _, want := range []string{"this", "this"} {
			if mark, err := b.MarkFile(t.Context(), u, want); mark != "this" || err != nil {
				t.Errorf("MarkFile = %q, %v", mark, err)
			}
		}
		if mark, err := b.MarkFile(t.Context(), u, "that"); mark != "this" || err != nil {
			t.Errorf("MarkFile of another = %q, %v, want the first", mark, err)
		}
		b.events()
		before := u // an order that was there before with the same id
		before.Created--
		if mark, err := b.MarkFile(t.Context(), before, "this"); mark != "" || err != nil {
			t.Errorf("MarkFile of another order = %q, %v", mark, err)
		}
		if finished, err := b.Filed(t.Context(), before, true); finished || err != nil {
			t.Errorf("Filed of another order = %v, %v", finished, err)
		}
		if mark, waits, err := b.FileMark(t.Context(), "/c", "1"); mark != "this" || !waits || err != nil {
			t.Errorf("FileMark = %q, %v, %v", mark, waits, err)
		}
		for _, want := range []bool{true, false} {
			if finished, err := b.Filed(t.Context(), u, true); finished != want || err != nil {
				t.Errorf("Filed = %v, %v, want %v", finished, err, want)
			}
		}
		b.want("OrderFinished:A")
		unfiled(0)
	})
}

// An order that is suspended at its own end, which is its first node too, begins anew by a reset.
func TestAnOrderOfAFileIsReset(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.File, r.PutAway, r.EndNode = true, true, "A" })
		b.step("A", ok)
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.Reset}, nil)
		b.is(projection.Due, "A")
		if orders, _, err := b.Unfiled(t.Context(), "", 10); len(orders) != 0 || err != nil {
			t.Errorf("Unfiled = %v, %v, want none", orders, err)
		}
		b.step("A", ok)
		b.is(projection.WaitingForResource, "A")
		orders, _, err := b.Unfiled(t.Context(), "", 10)
		if err != nil || len(orders) != 1 {
			t.Fatal(orders, err)
		}
		if finished, err := b.Filed(t.Context(), orders[0], true); !finished || err != nil {
			t.Errorf("Filed = %v, %v", finished, err)
		}
	})
}
