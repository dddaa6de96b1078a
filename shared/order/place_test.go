package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// An order that waits in line is counted there once, also if it was set back before its chain had max_orders.
func TestAnOrderInLineIsReset(t *testing.T) {
	free, full := ab(), ab()
	free.Nodes[0].Job, free.Nodes[0].OnError = "/back", "setback"
	full.Nodes[0].Job, full.Nodes[0].OnError, full.MaxOrders = "/back", "setback", 1
	onBoth(t, chains(free), func(t *testing.T, b *bench) {
		b.add(nil)
		l := b.claim()
		b.declared.set = chains(full)
		b.complete(l, failed)
		b.on("/c", "2") // takes the place
		b.now = b.now.Add(time.Minute)
		b.sweep()
		if taken, waiting := b.places(1, "1", "2"); taken != 1 || waiting != 1 {
			t.Fatalf("%d have a place and %d wait, want 1 and 1", taken, waiting)
		}
		b.do(order.Act{Kind: order.Reset}, nil)
		b.places(1, "1", "2")
		b.agree()
		for l := b.claim(); l != nil; l = b.claim() {
			b.complete(l, ok)
		}
		b.places(1, "1", "2")
		b.absent("1", "2")
	})
}

// A damaged order at the head of the line, or one whose version is lost, is passed over by whoever gives a place back, whose step ends.
// That is logged once.
func TestADamagedOrderAtTheHeadOfTheLine(t *testing.T) {
	chain, older := ab(), ab()
	chain.MaxOrders, older.MaxOrders = 1, 1
	older.Nodes[1].Next = "bad"
	for name, damage := range map[string]func(*bench){
		"damaged":              func(b *bench) { b.damage("order//c,d", "-") },
		"of a damaged version": func(b *bench) { b.damage("versions//c", "0000000002") },
		"of a lost version": func(b *bench) {
			gone := store.Delete(store.Key{Table: store.Work, Partition: "versions//c", Sort: "0000000002"}, store.Always)
			if err := b.store.Write(b.t.Context(), store.Write{Token: "t", Ops: []store.Op{gone}}); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(chain), func(t *testing.T, b *bench) {
				b.on("/c", "1")
				b.now = b.now.Add(time.Millisecond)
				b.declared.set = chains(older)
				b.on("/c", "d")
				b.declared.set = chains(chain)
				b.now = b.now.Add(time.Millisecond)
				b.on("/c", "e")
				b.now = b.now.Add(time.Millisecond)
				b.on("/c", "f")
				damage(b)
				other := open(t, b.store, b.declared.set) // which has not read the version
				other.now = b.now
				for _, id := range strings.Split("1 e f", " ") {
					for range 2 { // its steps
						l := other.claim()
						if l == nil || l.Task.Order.ID != id {
							t.Fatalf("the step of %+v can start, want that of order %s", l, id)
						}
						other.complete(l, ok)
					}
				}
				other.now = other.now.Add(time.Hour)
				_ = other.Sweep(t.Context())
				page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "orders-due"})
				if err != nil || slices.ContainsFunc(page.Items, func(i store.Item) bool { return strings.Contains(string(i.Value), "fill") }) {
					t.Errorf("places are still to be filled: %v %v", page.Items, err)
				}
				if n := strings.Count(other.errors.String(), "is left out"); n != 1 {
					t.Errorf("it is logged %d times: %s", n, &other.errors)
				}
			})
		})
	}
}

// Nor do so many of them that nobody looks behind them at once.
func TestManyDamagedOrdersAtTheHeadOfTheLine(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		b.sweep() // what is left behind was looked for; that is done once a minute
		for i := range 21 {
			b.now = b.now.Add(time.Millisecond)
			b.on("/c", fmt.Sprint(i))
		}
		l := b.claim()
		for i := 1; i < 20; i++ {
			b.damage(fmt.Sprint("order//c,", i), "-")
		}
		b.complete(l, ok)
		b.complete(b.claim(), ok)
		b.now = b.now.Add(time.Second)
		b.sweep()
		if l := b.claim(); l == nil || l.Task.Order.ID != "20" {
			t.Errorf("the step of %+v can start, want that of the order behind the damaged ones", l)
		}
		b.nothingLeft()
	})
}
