package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
)

// places compares the counted places of /c with those of its orders and with its line, and demands that none is free while an order waits.
func (b *bench) places(most int, ids ...string) (taken, waiting int) {
	b.t.Helper()
	for _, id := range ids {
		items, err := b.store.Get(b.t.Context(), store.Key{Table: store.Work, Partition: "order//c," + id, Sort: "-"})
		if err != nil {
			b.t.Fatal(err)
		}
		var o order.Order
		if items[0] == nil || json.Unmarshal(items[0].Value, &o) != nil {
			continue
		}
		if o.Counted {
			taken++
		}
		if o.Waiting == "max_orders" {
			waiting++
		}
	}
	items, err := b.store.Get(b.t.Context(), store.Key{Table: store.Work, Partition: "places//c", Sort: "-"})
	if err != nil {
		b.t.Fatal(err)
	}
	var counted struct{ T, W int }
	if items[0] != nil {
		_ = json.Unmarshal(items[0].Value, &counted)
	}
	line, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: "line//c"})
	if err != nil {
		b.t.Fatal(err)
	}
	if counted.T != taken || counted.W != waiting || len(line.Items) != waiting {
		b.t.Errorf("%d orders have a place and %d wait; %d and %d are counted, %d are in line", taken, waiting, counted.T, counted.W, len(line.Items))
	}
	if taken > most || taken < most && waiting > 0 {
		b.t.Errorf("%d orders have a place and %d wait, max_orders is %d", taken, waiting, most)
	}
	return taken, waiting
}

// Whoever gives a place back hands it on, also if its clock is behind the one by which the first in line has come there.
func TestAPlaceIsHandedOnByAClockThatIsBehind(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.add(nil)
		start := b.now.Add(time.Second)
		b.add(func(r *order.Request) { r.ID, r.RunAt = "2", start })
		b.now = b.now.Add(time.Millisecond)
		b.on("/c", "3")
		l := b.claim()
		b.now = start
		b.sweep() // 2 comes to the line, before 3
		b.now = start.Add(-time.Second / 2)
		b.do(order.Act{Kind: order.Remove}, nil)
		b.complete(l, ok)
		if taken, waiting := b.places(1, "1", "2", "3"); taken != 1 || waiting != 1 {
			t.Errorf("%d have a place and %d wait, want 1 and 1", taken, waiting)
		}
		if err := b.Act(t.Context(), "/c", "2", order.Act{Kind: order.Remove}); err != nil {
			t.Fatal(err)
		}
		b.places(1, "1", "2", "3")
		if l := b.claim(); l == nil || l.Task.Order.ID != "3" {
			t.Errorf("the step of %+v can start, want that of order 3", l)
		}
	})
}

// Many processes act on orders of one chain at once, in all ways that give back places and leave lines: as many have places then as may, and
// all end.
func TestManyActAtOnceOnOrdersInLine(t *testing.T) {
	const most, orders, rounds = 2, 16, 30
	chain := ab()
	chain.MaxOrders = most
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		engines := []*order.Engine{b.Engine}
		if !b.store.Exclusive() {
			engines = append(engines, rivals(t, b, 1)[0].Engine)
		}
		var ids []string
		for i := range orders {
			ids = append(ids, fmt.Sprint(i))
			b.on("/c", ids[i])
		}
		kinds := []order.Act{{Kind: order.Reset}, {Kind: order.Suspend}, {Kind: order.Resume}, {Kind: order.Skip}, {Kind: order.SetNode, Node: "B"}}
		for round := range rounds {
			var group sync.WaitGroup
			for i, id := range ids {
				group.Go(func() {
					act := kinds[(i*i+round*(i%3+1))%len(kinds)]
					err := engines[i%len(engines)].Act(t.Context(), "/c", id, act)
					if err != nil && !errors.Is(err, order.ErrState) && !errors.Is(err, order.ErrNoOrder) {
						t.Errorf("%s of %s: %v", act.Kind, id, err)
					}
				})
			}
			group.Wait()
			b.sweep()
			b.places(most, ids...)
		}
		b.agree()
		for _, id := range ids {
			_ = b.Act(t.Context(), "/c", id, order.Act{Kind: order.Resume})
		}
		for l := b.claim(); l != nil; l = b.claim() {
			b.complete(l, ok)
			b.places(most, ids...)
		}
		b.absent(ids...)
	})
}

// An act on many hands places on too.
func TestAnActOnManyOrdersInLine(t *testing.T) {
	const most, orders = 2, 16
	chain := ab()
	chain.MaxOrders = most
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		var ids []string
		for i := range orders {
			ids = append(ids, fmt.Sprint(i))
			b.on("/c", ids[i])
		}
		for _, kind := range []order.ActKind{order.Suspend, order.Resume, order.Suspend, order.Reset, order.Skip} {
			b.all(order.Act{Kind: kind}, everything)
			b.sweep()
			b.places(most, ids...)
		}
		for l := b.claim(); l != nil; l = b.claim() {
			b.complete(l, ok)
			b.places(most, ids...)
		}
		b.absent(ids...)
	})
}
