package order_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
)

// A chain with many orders is stopped by a request that looks at few of them; the others follow, whoever goes on with it, and one that
// cannot be read keeps none.
func TestAChainWithManyOrdersIsStopped(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const n = 350
		b.addMany(n)
		b.damage("order//c,117", "-")
		if err := b.StopChain(t.Context(), "/c", true); err != nil {
			t.Fatal(err)
		}
		if got := b.count("OrderWaiting"); got == 0 || got > 100 {
			t.Errorf("%d orders have followed the stop at once, want 1 to 100", got)
		}
		for after := int64(0); after < 40; after++ { // processes that die at any write
			var left atomic.Int64
			left.Store(5 * after)
			other := open(t, broken{b.store, &left}, b.declared.set)
			other.now = b.now
			_ = other.Sweep(t.Context())
			left.Store(math.MaxInt64)
		}
		b.now = b.now.Add(time.Hour)
		_ = b.Sweep(t.Context())
		if got := b.count("OrderWaiting"); got != n-1 {
			t.Errorf("%d orders are stopped, want %d", got, n-1)
		}
	})
}

// count returns how many events of a type there are.
func (b *bench) count(kind string) (n int) {
	b.t.Helper()
	page, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range page.Events {
		if page.Events[i].Type == kind {
			n++
		}
	}
	return n
}

// A version stays while one of many orders is on it, and while one cannot be read; it goes then.
func TestVersionsOfAChainWithManyOrders(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.add(func(r *order.Request) { r.ID = "z" })
		b.declared.set = chains(axb())
		b.addMany(250)
		b.later("[1 2]")
		b.later("[1 2]")
		if err := b.Act(t.Context(), "/c", "z", order.Act{Kind: order.Remove}); err != nil {
			t.Fatal(err)
		}
		b.damage("order//c,7", "-")
		for range 3 {
			b.now = b.now.Add(time.Hour)
			_ = b.Sweep(t.Context())
		}
		if got := b.numbers(); got != "[1 2]" {
			t.Errorf("versions %s, want [1 2]: nobody knows which one the damaged order is on", got)
		}
		if err := b.store.Remove(t.Context(), store.Range{Table: store.Work, Partition: "orders-of//c", From: "7", To: "70"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.now = b.now.Add(time.Hour)
			_ = b.Sweep(t.Context())
		}
		if got := b.numbers(); got != "[2]" {
			t.Errorf("versions %s, want [2]", got)
		}
	})
}

// Processes that hear the same alarm at the same time do not make more of it.
func TestAlarmsThatManyHear(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const n = 350
		b.add(func(r *order.Request) { r.ID = "z" })
		b.declared.set = chains(axb())
		b.addMany(n)
		if err := b.StopChain(t.Context(), "/c", true); err != nil {
			t.Fatal(err)
		}
		alarms := func() []store.Item {
			page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "orders-due"})
			if err != nil {
				t.Fatal(err)
			}
			return page.Items
		}
		for hour := range 4 {
			b.now = b.now.Add(90 * time.Minute)
			w := &watched{Store: b.store}
			one, other := open(t, w, b.declared.set), open(t, b.store, b.declared.set)
			one.now, other.now = b.now, b.now.Add(time.Duration(hour)*time.Second)
			w.after = func(r store.Range) {
				if r.Partition == "orders-of//c" && r.Limit == 100 && !r.Eventual {
					after := w.after
					w.after = nil
					other.sweep()
					w.after = after
				}
			}
			one.sweep()
			w.after = nil
			if all := alarms(); len(all) != 1 || string(all[0].Value) != "versions:/c" {
				t.Errorf("%d alarms, want one for the versions: %+v", len(all), all)
			}
		}
		if got := b.count("OrderWaiting"); got != n+1 {
			t.Errorf("%d orders are stopped, want %d", got, n+1)
		}
	})
}
