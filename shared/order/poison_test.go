package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// timed returns a chain whose orders wait for a minute at W and go on to B then.
func timed(path string) definition.JobChain {
	return definition.JobChain{Path: path, Nodes: []definition.Node{
		{ID: "W", Wait: &definition.Wait{For: time.Minute}, Next: "B"}, {ID: "B", Job: "/j", Next: "end"}, {ID: "end"},
	}}
}

// damage makes what lies at a partition's only key unreadable.
func (b *bench) damage(partition, sort string) {
	b.t.Helper()
	key := store.Key{Table: store.Work, Partition: partition, Sort: sort}
	items, err := b.store.Get(b.t.Context(), key)
	if err != nil || items[0] == nil {
		b.t.Fatalf("there is no %v: %v", key, err)
	}
	b.put(store.Item{Key: key, Version: items[0].Version + 1, Value: []byte("{")})
}

func (b *bench) put(item store.Item) {
	b.t.Helper()
	if err := b.store.Write(b.t.Context(), store.Write{Token: "t" + item.Key.Sort, Ops: []store.Op{store.Put(item, store.Always)}}); err != nil {
		b.t.Fatal(err)
	}
}

// at compares the node of an order.
func (b *bench) at(chain, id, node string) {
	b.t.Helper()
	if o, err := b.Get(b.t.Context(), chain, id); err != nil || o.NodeID != node {
		b.t.Errorf("%s,%s is at %q, want %s (%v)", chain, id, o.NodeID, node, err)
	}
}

// An order that cannot be read keeps no other from what is due, nor from being mended.
func TestADamagedOrderKeepsNoOther(t *testing.T) {
	onBoth(t, chains(ab(), timed("/w")), func(t *testing.T, b *bench) {
		b.add(nil)
		b.on("/w", "1")
		b.on("/c", "2")
		l := b.claim()
		if l.Task.Order.ID == "1" {
			l = b.claim()
		}
		b.damage("order//c,1", "-")
		key := store.Key{Table: store.Work, Partition: fmt.Sprintf("task/%08x", l.Task.ID.Group()), Sort: l.Task.ID.UUID()}
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Delete(key, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
		if err := b.Sweep(t.Context()); err == nil {
			t.Error("a damaged order is no error")
		}
		b.at("/w", "1", "B")
		if _, err := b.Get(t.Context(), "/c", "2"); !errors.Is(err, order.ErrNoOrder) {
			t.Errorf("the order without a task has not ended: %v", err)
		}
	})
}

// Orders in line go on past one that cannot be read.
func TestADamagedOrderInLine(t *testing.T) {
	chain := ab()
	chain.MaxOrders = 1
	onBoth(t, chains(chain), func(t *testing.T, b *bench) {
		for i := range 3 {
			b.now = b.now.Add(time.Millisecond)
			b.on("/c", fmt.Sprint(i))
		}
		b.damage("order//c,1", "-")
		b.declared.set = chains(ab())
		b.now = b.now.Add(time.Minute)
		_ = b.Sweep(t.Context())
		for range 2 {
			if b.claim() == nil {
				t.Fatal("the order behind the damaged one still waits for a place")
			}
		}
	})
}

// However many alarms fail again and again, others have their turn, and those that fail are tried ever more seldom.
func TestAlarmsThatFail(t *testing.T) {
	onBoth(t, chains(timed("/v"), timed("/w")), func(t *testing.T, b *bench) {
		const bad = 230 // more than two pages
		for i := range bad {
			b.on("/v", fmt.Sprint(i))
		}
		b.on("/w", "1")
		gone := store.Delete(store.Key{Table: store.Work, Partition: "versions//v", Sort: "0000000001"}, store.Always)
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{gone}}); err != nil {
			t.Fatal(err)
		}
		other := open(t, b.store, b.declared.set) // which has not read the version
		other.now = b.now.Add(time.Hour)
		if err := other.Sweep(t.Context()); err == nil {
			t.Error("orders whose version is lost are no error")
		}
		other.at("/w", "1", "B")
		if err := other.Sweep(t.Context()); err != nil {
			t.Errorf("what has failed is tried again at once: %v", err)
		}
		tries := 0
		for range 60 * 60 {
			other.now = other.now.Add(time.Second)
			if other.Sweep(t.Context()) != nil {
				tries++
			}
		}
		if tries < 10 || tries > 20 {
			t.Errorf("what fails was tried in %d seconds of an hour, want 10 to 20", tries)
		}
		page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "orders-due"})
		if err != nil || len(page.Items) != bad {
			t.Errorf("%d alarms are left, %v, want %d", len(page.Items), err, bad)
		}
	})
}

// busyFor is a store that is busy for writes of one order.
type busyFor struct {
	store.Store
	order string // path
}

func (s busyFor) Write(ctx context.Context, w store.Write) error {
	for i := range w.Ops {
		if strings.HasPrefix(w.Ops[i].Item.Key.Partition, "order/"+s.order) {
			return store.ErrBusy
		}
	}
	return s.Store.Write(ctx, w)
}

// An order that is busy for ever keeps no other from what is due.
func TestAnOrderIsBusyForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		a := open(t, s, chains(timed("/c")))
		a.now = time.Now()
		a.add(nil)
		a.on("/c", "2")
		b := open(t, shared{busyFor{s, "/c,1"}}, a.declared.set)
		time.Sleep(time.Hour)
		b.now = time.Now()
		if err := b.Sweep(t.Context()); err == nil {
			t.Error("an order that cannot be written is no error")
		}
		b.at("/c", "2", "B")
		time.Sleep(time.Second)
		a.now = time.Now()
		if err := a.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		a.at("/c", "1", "B")
		_ = b.queue.Close()
		_ = a.queue.Close()
		_, _ = b.journal.Close(), a.journal.Close()
	})
}

// An order that cannot go on when its event happens, or waits for what cannot be read, keeps no other from its event; it goes on once it
// can, even after the end of its time, and the event is the cause.
func TestAnOrderThatCannotGoOnAtItsEvent(t *testing.T) {
	set := waiting(definition.Wait{Event: "Paid", Timeout: time.Hour})
	set.JobChains = append(set.JobChains, waiting(definition.Wait{Event: "Sent"}).JobChains[0])
	set.JobChains[1].Path = "/w"
	version := store.Key{Table: store.Work, Partition: "versions//c", Sort: "0000000001"}
	onBoth(t, set, func(t *testing.T, b *bench) {
		b.on("/c", "1")
		b.on("/c", "2")
		b.on("/w", "1")
		kept, err := b.store.Get(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Delete(version, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		b.put(store.Item{Key: store.Key{Table: store.Work, Partition: "wait-shapes", Sort: "0"}, Version: 1, Value: []byte(`{"e":"?","p":"//"}`)})
		b.put(store.Item{Key: store.Key{Table: store.Work, Partition: "wait-shapes", Sort: "1"}, Version: 1, Value: []byte("{")})
		b.events()
		other := open(t, b.store, b.declared.set) // which has not read the version
		other.now = b.now
		paid, err := b.journal.Emit(t.Context(), []event.Event{{Type: "Paid"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.emit("Sent", "", "")
		other.match()
		other.at("/w", "1", "B")
		b.events()
		other.now = other.now.Add(2 * time.Hour)
		if err := other.Sweep(t.Context()); err == nil {
			t.Error("an order that cannot go on is no error")
		}
		third := open(t, b.store, b.declared.set)
		third.now = other.now.Add(time.Second)
		_ = third.Sweep(t.Context())
		b.want()
		b.put(*kept[0])
		from := b.seen
		third.now = third.now.Add(time.Hour)
		third.sweep()
		b.want("OrderNodeChanged:B TaskAdded OrderNodeChanged:B TaskAdded")
		page, err := b.journal.ReadAfter(t.Context(), journal.Request{After: from, Limit: 1, Causes: true})
		if err != nil || len(page.Events) == 0 || page.Events[0].Cause != event.CausedBy(paid.FirstID) {
			t.Errorf("the cause is not the event %d: %+v %v", paid.FirstID, page.Events, err)
		}
	})
}
