package order_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// An order may come, and its event happen, between any two reads of who looks for it: an event after the order is always seen, one
// before it never counts.
func TestAnOrderComesWhileEventsAreRead(t *testing.T) {
	const goesOn, staysThere = "B", "W"
	set := waiting(definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}})
	set.JobChains = append(set.JobChains, definition.JobChain{Path: "/d", Nodes: []definition.Node{{ID: "W", Wait: &definition.Wait{Event: "Paid", Path: "/x"}}, {ID: "end"}}})
	for name, test := range map[string]struct {
		read   string // after which read it happens
		nth    int
		others bool // another order waits already, so that the journal is read from the beginning
		do     string
		at     string
	}{
		"nobody waited: first the order":          {"ReadNewest", 1, false, "order event", goesOn},
		"nobody waited: first the event":          {"ReadNewest", 1, false, "event order", staysThere},
		"before the events are read: order first": {"ReadNewest", 1, true, "order event", goesOn},
		"before the events are read: event first": {"ReadNewest", 1, true, "event order", staysThere},
		"after the lists are read: order first":   {"before", 1, true, "order event", goesOn},
		"after the lists are read: event first":   {"before", 1, true, "event order", staysThere},
		"at the second read: order first":         {"before", 2, true, "order event", goesOn},
		"events are read: order first":            {"ReadAfter", 1, true, "order event", goesOn},
		"events are read: event first":            {"ReadAfter", 1, true, "event order", staysThere},
		"events are read: the order alone":        {"ReadAfter", 1, true, "order", staysThere},
		"at the end: order first":                 {"ReadAfter", 2, true, "order event", goesOn},
		"at the end: event first":                 {"ReadAfter", 2, true, "event order", staysThere},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, set, func(t *testing.T, b *bench) {
				if test.others {
					b.add(func(r *order.Request) { r.Chain = "/d" })
					b.emit("Paid", "", `"order":"x"`)
				}
				reads := 0
				b.read = func(how string) {
					if how != test.read {
						return
					}
					if reads++; reads != test.nth {
						return
					}
					for _, do := range strings.Fields(test.do) {
						if do == "order" {
							b.add(nil)
						} else {
							b.emit("Paid", "", `"order":"1"`)
						}
					}
				}
				b.match()
				b.read = nil
				b.match()
				if o, err := b.Get(t.Context(), "/c", "1"); err != nil || o.NodeID != test.at {
					t.Errorf("the order is at %s, want %s (%v)", o.NodeID, test.at, err)
				}
				b.events()
			})
		})
	}
}

// Several may look at once, and whoever dies in between leaves nothing undone.
func TestManyLookForTheSameOrders(t *testing.T) {
	onBoth(t, waiting(definition.Wait{Event: "Paid"}), func(t *testing.T, b *bench) {
		const orders = 40
		for i := range orders {
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		b.events()
		b.emit("Paid", "", "")
		dying, die := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = dying
				}
				if err := b.Match(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		die()
		all.Wait()
		if got := b.events(); strings.Count(got, "OrderNodeChanged:B") != orders || strings.Count(got, "OrderNodeChanged") != orders {
			t.Errorf("events: %s", got)
		}
	})
}

// An event is looked at once all its predecessors are there; one that was stored by a process which died right after is found by
// another, from the stored position.
func TestAnotherProcessGoesOn(t *testing.T) {
	s := memory.New(memory.Options{})
	a := open(t, s, waiting(definition.Wait{Event: "Paid"}))
	a.add(nil)
	a.match()
	a.emit("Paid", "", "")
	b := open(t, s, a.declared.set)
	b.match()
	b.is(projection.Due, "B")
}

// Where retention has evicted events before anybody looked at them, it goes on behind them.
func TestEventsAreEvictedBeforeTheyAreLookedAt(t *testing.T) {
	s := memory.New(memory.Options{})
	b := open(t, s, waiting(definition.Wait{Event: "Paid"}))
	b.add(nil)
	b.match()
	keep := journal.Open(s, journal.Options{Now: func() time.Time { return b.now }, Folds: projection.Folds(), Retention: journal.Retention{Events: 10}})
	defer func() { _ = keep.Close() }()
	floor := int64(0)
	for i := 0; floor == 0; i++ {
		if i == 100 {
			t.Fatal("nothing was evicted")
		}
		for range 100 {
			b.emit("Other", "", "")
		}
		b.now = b.now.Add(time.Hour)
		if _, err := keep.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, err := keep.Floor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		floor = int64(at)
	}
	b.match()
	b.emit("Paid", "", "")
	b.match()
	if o, err := b.Get(t.Context(), "/c", "1"); err != nil || o.NodeID != "B" {
		t.Errorf("the order is at %s, want B (%v)", o.NodeID, err)
	}
}

// Run lets orders go on as events happen.
func TestRunFollowsTheJournal(t *testing.T) {
	for name, s := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, s, waiting(definition.Wait{Event: "Paid"}))
			ctx, end := context.WithCancel(t.Context())
			var run sync.WaitGroup
			defer run.Wait()
			defer end()
			run.Go(func() { b.Run(ctx) })
			b.add(nil)
			b.emit("Paid", "", "")
			read, err := b.journal.ReadAfter(ctx, journal.Request{Limit: 1, Timeout: time.Minute, Match: isA("OrderNodeChanged")})
			if err != nil || len(read.Events) == 0 {
				t.Errorf("the order has not gone on: %v", err)
			}
		})
	}
}

// counting counts requests.
type counting struct {
	store.Store
	mu    sync.Mutex
	count int
}

func (c *counting) more() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
}

func (c *counting) Query(ctx context.Context, r store.Range) (store.Page, error) {
	c.more()
	return c.Store.Query(ctx, r)
}

func (c *counting) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	c.more()
	return c.Store.Get(ctx, keys...)
}

func (c *counting) Write(ctx context.Context, w store.Write) error {
	c.more()
	return c.Store.Write(ctx, w)
}

// What an event costs depends on the orders that wait for it, not on those that wait for others; one that nobody waits for costs
// no more than the look at the list of what is waited for.
func TestWhatAnEventCosts(t *testing.T) {
	t.Parallel()
	cost := func(orders int, events ...string) int {
		s := &counting{Store: memory.New(memory.Options{})}
		b := open(t, s, waiting(definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}}))
		for i := range orders {
			b.add(func(r *order.Request) { r.ID = fmt.Sprint(i) })
		}
		b.match()
		for _, kind := range events {
			b.emit(kind, "", `"order":"1"`)
		}
		before := s.count
		b.match()
		return s.count - before
	}
	if few, many := cost(2, "Paid"), cost(500, "Paid"); many > few {
		t.Errorf("an event takes %d requests where 500 orders wait, %d where 2 do", many, few)
	}
	if one, many := cost(2, "Other"), cost(2, slices.Repeat([]string{"Other"}, 50)...); many > one {
		t.Errorf("50 events that nobody waits for take %d requests, one %d", many, one)
	}
	if never := cost(0, "Paid"); never > 2 {
		t.Errorf("an event takes %d requests where nobody ever waited", never)
	}
}

var _ order.Journal = (*journal.Journal)(nil)
