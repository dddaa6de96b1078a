package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
)

// An order whose step's task is gone goes on as after an error.
func TestAnOrderWhoseTaskIsGoneGoesOn(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(nil)
		b.add(func(r *order.Request) { r.ID = "2" })
		l := b.claim()
		b.events()
		key := store.Key{Table: store.Work, Partition: fmt.Sprintf("task/%08x", l.Task.ID.Group()), Sort: l.Task.ID.UUID()}
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Delete(key, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderStepEnded:Error OrderNodeChanged:bad OrderFinished:bad")
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want()
	})
}

// However many orders wait for a place, those for which there is one go on at once when max_orders is raised.
func TestALongLineIsLetIn(t *testing.T) {
	const waiting, most = 250, 230
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		for i := range 1 + waiting {
			b.now = b.now.Add(time.Millisecond)
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		b.events()
		raised := ab()
		raised.MaxOrders = most
		b.declared.set = chains(raised)
		b.now = b.now.Add(time.Minute)
		b.sweep()
		if went := b.types()["OrderNodeChanged"]; went != most-1 {
			t.Errorf("%d orders went on, want %d", went, most-1)
		}
	})
}

// Orders that wait for a place go on when max_orders is raised, or is gone.
func TestMaxOrdersIsRaised(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		for i := range 4 {
			b.now = b.now.Add(time.Millisecond)
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		b.events()
		raised := ab()
		raised.MaxOrders = 2
		b.declared.set = chains(raised)
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderNodeChanged:A TaskAdded")
		b.declared.set = chains(ab())
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderNodeChanged:A TaskAdded OrderNodeChanged:A TaskAdded")
		for range 4 {
			b.step("A", failed)
		}
	})
}
