package order_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// late is a store whose writes become visible item by item: some reads of an item may return what it was before its last write. The
// conditions of writes are exact.
type late struct {
	store.Store
	mu     sync.Mutex
	before map[store.Key]*store.Item // what was there before the last write; nil: nothing
	late   []string                  // what the partitions begin with whose items are late
	reads  int                       // so many reads of such items are
	fail   int                       // so many reads of such items fail
}

// openLate opens a bench on such a store.
func openLate(t *testing.T, set *definition.Set) (*bench, *late) {
	s := &late{Store: memory.New(memory.Options{}), before: map[store.Key]*store.Item{}}
	return open(t, shared{s}, set), s
}

// hide makes the next reads late of the items of partitions that begin so.
func (s *late) hide(reads int, partitions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late, s.reads, s.fail = partitions, reads, 0
}

func (s *late) Write(ctx context.Context, w store.Write) error {
	keys := make([]store.Key, len(w.Ops))
	for i := range w.Ops {
		keys[i] = w.Ops[i].Item.Key
	}
	before, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return err
	}
	if err := s.Store.Write(ctx, w); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.Ops {
		if w.Ops[i].Kind != store.OpCheck {
			s.before[keys[i]] = before[i]
		}
	}
	return nil
}

func (s *late) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := s.Store.Get(ctx, keys...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if err != nil || s.reads+s.fail == 0 || !s.isLate(key.Partition) {
			continue
		}
		if s.fail > 0 {
			s.fail--
			return nil, store.ErrUnavailable
		}
		if before, written := s.before[key]; written {
			items[i] = before
			s.reads--
		}
	}
	return items, err
}

func (s *late) isLate(partition string) bool {
	return slices.ContainsFunc(s.late, func(begin string) bool { return strings.HasPrefix(partition, begin) })
}

// Query returns no items that were added by their last write, as long as reads are late.
func (s *late) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := s.Store.Query(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.reads == 0 || !s.isLate(r.Partition) {
		return page, err
	}
	there := len(page.Items)
	page.Items = slices.DeleteFunc(page.Items, func(item store.Item) bool {
		before, written := s.before[item.Key]
		return written && before == nil
	})
	if len(page.Items) < there {
		s.reads--
	}
	return page, nil
}

// allLate fails unless the reads that were to be late have been.
func (s *late) allLate(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads > 0 {
		t.Errorf("%d reads of %s were still to be late", s.reads, s.late)
	}
}

// An alarm that is seen before what it is for is not taken away: the next look finds that.
func TestAlarmsOutlastLateReads(t *testing.T) {
	t.Parallel()
	locked, limited := ab(), ab()
	locked.Nodes[0].Locks, limited.MaxOrders = []definition.NodeLock{{Name: "l"}}, 1
	for _, c := range []struct {
		name  string
		chain definition.JobChain
		play  func(t *testing.T, b *bench, s *late)
	}{
		{"a lock is handed on", locked, func(t *testing.T, b *bench, s *late) { inLineLate(t, b, s, "lock/") }},
		{"places are filled", limited, func(t *testing.T, b *bench, s *late) { inLineLate(t, b, s, "places/") }},
		{"an act on many begins", ab(), func(t *testing.T, b *bench, s *late) {
			b.add(nil)
			began := b.all(order.Act{Kind: order.Suspend}, everything)
			s.hide(1, "act/")
			b.sweep()
			b.told(began.ID, order.Bulk{Kind: "suspend", By: "ada", Count: 1, Done: 1, State: order.BulkDone})
		}},
		{"an act on many is resumed", ab(), func(t *testing.T, b *bench, s *late) {
			b.add(nil)
			began := b.all(order.Act{Kind: order.Suspend}, everything)
			if err := b.StopBulk(t.Context(), began.ID); err != nil {
				t.Fatal(err)
			}
			b.sweep()
			if err := b.ResumeBulk(t.Context(), began.ID); err != nil {
				t.Fatal(err)
			}
			s.hide(1, "act/")
			b.sweep()
			b.told(began.ID, order.Bulk{Kind: "suspend", By: "ada", Count: 1, Done: 1, State: order.BulkDone})
		}},
		{"orders follow a chain", ab(), func(t *testing.T, b *bench, s *late) {
			b.add(nil)
			s.hide(2, "chain/") // by who stops it, and at the first look
			if err := b.StopChain(t.Context(), "/c", true); err != nil {
				t.Fatal(err)
			}
			b.now = b.now.Add(2 * time.Second)
			b.sweep()
			b.waitsForChain(t)
		}},
		{"an order follows a chain", ab(), func(t *testing.T, b *bench, s *late) {
			b.add(nil)
			for _, kind := range []order.ActKind{order.Suspend, order.Resume} {
				if err := b.Act(t.Context(), "/c", "1", order.Act{Kind: kind}); err != nil {
					t.Fatal(err)
				}
			}
			s.late, s.fail = []string{"order/"}, 1
			if err := b.StopChain(t.Context(), "/c", true); err != nil {
				t.Fatal(err)
			}
			s.hide(1, "order/")
			b.now = b.now.Add(1500 * time.Millisecond)
			b.sweep()
			b.waitsForChain(t)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, s := openLate(t, chains(c.chain))
			b.sweep() // looks for what is left behind, and will not do so again for a while
			c.play(t, b, s)
			s.allLate(t)
		})
	}
}

// inLineLate lets an order end its step which another one waits for. Who does that cannot read yet that the other one waits, and
// leaves it to an alarm; who hears this cannot read yet, in partitions, what the first one has given back.
func inLineLate(t *testing.T, b *bench, s *late, partitions string) {
	t.Helper()
	b.add(func(r *order.Request) { r.EndNode = "A" })
	b.add(func(r *order.Request) { r.ID, r.RunAt = "2", b.now.Add(time.Second) })
	first := b.claim()
	b.now = b.now.Add(time.Second)
	b.sweep() // the second is in line
	if b.claim() != nil {
		t.Fatal("the second order does not wait")
	}
	s.hide(1, "order/"+store.Fit("/c,2"))
	b.complete(first, ok)
	s.allLate(t)
	s.hide(1, partitions)
	b.now = b.now.Add(time.Second)
	b.sweep()
	b.step("A", ok)
}

func (b *bench) waitsForChain(t *testing.T) {
	t.Helper()
	if b.claim() != nil {
		t.Error("a step of a stopped chain starts")
	}
}

// Children that are made by the write that ends their fork are ended, though that is seen before them.
func TestChildrenOfAForkThatFailsAtOnceAreEnded(t *testing.T) {
	t.Parallel()
	b, s := openLate(t, chains(each(func(n *definition.Node) { n.Fork.OnFailed = definition.FailedCancels })))
	b.add(func(r *order.Request) { r.ID, r.Node = "1!2", "N" }) // keeps the third child's id
	b.add(list("1,2,3"))
	s.hide(1, "order/"+store.Fit("/c,1!0"))
	b.sweep()
	s.allLate(t)
	for _, id := range []string{"1!0", "1!1"} {
		if _, err := b.Get(t.Context(), "/c", id); !errors.Is(err, order.ErrNoOrder) {
			t.Errorf("the child %s is there, %v", id, err)
		}
	}
}

// The file of an order at its end is put away, though that it is to be is seen before the order has come there.
func TestAFileIsPutAwayThoughItsOrderIsSeenLate(t *testing.T) {
	t.Parallel()
	b, s := openLate(t, chains(ab()))
	b.add(func(r *order.Request) { r.File, r.PutAway, r.EndNode = true, true, "A" })
	b.step("A", ok)
	s.hide(1, "order/")
	for _, want := range []int{0, 1} {
		if all, _, err := b.Unfiled(t.Context(), "", 10); err != nil || len(all) != want {
			t.Errorf("the files of %v are to be put away, %v, want %d", all, err, want)
		}
	}
	s.allLate(t)
}

// The first order that ever waits for an event goes on, though the position of those who look is seen before the list that holds it.
func TestTheFirstOrderThatWaitsIsFoundThoughItIsListedLate(t *testing.T) {
	t.Parallel()
	b, s := openLate(t, waiting(definition.Wait{Event: "Paid"}))
	b.add(nil)
	if _, err := b.journal.Emit(t.Context(), []event.Event{{Type: "Paid"}}, nil); err != nil {
		t.Fatal(err)
	}
	s.hide(2, "waits/")
	for range 2 {
		if err := b.Match(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.allLate(t)
	if b.events(); b.claim() == nil {
		t.Error("the order waits for an event that has happened")
	}
}

// An order that goes from one wait to another is found there, though it is seen late where it was before.
func TestAnOrderThatWaitsAgainIsFoundThoughItIsSeenLate(t *testing.T) {
	t.Parallel()
	set := chains(definition.JobChain{Path: "/c", Nodes: []definition.Node{
		{ID: "V", Wait: &definition.Wait{Event: "Asked"}, Next: "W"}, {ID: "W", Wait: &definition.Wait{Event: "Paid"}, Next: "B"},
		{ID: "B", Job: "/j", Next: "good"}, {ID: "good"},
	}})
	b, s := openLate(t, set)
	b.add(nil)
	b.do(order.Act{Kind: order.SetNode, Node: "W"}, nil)
	b.emit("Paid", "", "")
	s.hide(4, "order/", "waits/")
	for range 2 {
		if err := b.Match(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.allLate(t)
	if b.events(); b.claim() == nil {
		t.Error("the order waits for an event that has happened")
	}
}

// An alarm that is seen before its order is not taken away.
func TestAnAlarmIsSeenBeforeItsOrder(t *testing.T) {
	t.Parallel()
	for reads := range 8 {
		b, s := openLate(t, chains(timed("/c")))
		b.add(nil)
		b.now = b.now.Add(time.Minute)
		s.hide(reads, "order/")
		b.sweep()
		s.hide(0)
		b.at("/c", "1", "B")
	}
}

// The first wait for an event does not time out though the event has happened, where the position of those who look is seen late.
func TestTheFirstWaitDoesNotTimeOutThoughItsPositionIsSeenLate(t *testing.T) {
	t.Parallel()
	b, s := openLate(t, waiting(definition.Wait{Event: "Paid", Timeout: time.Minute}))
	b.add(nil)
	b.emit("Paid", "", "")
	b.now = b.now.Add(time.Minute)
	s.hide(1, "wait-position")
	_ = b.Sweep(t.Context()) // cannot look for its event
	s.allLate(t)
	b.now = b.now.Add(time.Minute)
	b.sweep()
	b.at("/c", "1", "B")
}
