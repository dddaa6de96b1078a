package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// rival is one of several processes on a store.
type rival struct {
	*order.Engine
	queue   *queue.Queue
	journal *journal.Journal
}

// rivalOn opens an engine on a process's store.
func rivalOn(t *testing.T, s store.Store, d order.Definitions, now func() time.Time) rival {
	t.Helper()
	j := journal.Open(s, journal.Options{Now: now, Folds: projection.Folds()})
	e := order.Open(order.Options{Store: s, Journal: j, Definitions: d, Now: now})
	q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: d, Now: now, Steps: e})
	e.Use(q)
	t.Cleanup(func() { _ = q.Close(); _ = j.Close() })
	return rival{e, q, j}
}

func rivals(t *testing.T, b *bench, n int) []rival {
	all := make([]rival, n)
	for i := range all {
		all[i] = rivalOn(t, b.store, b.declared, func() time.Time { return b.now })
	}
	return all
}

// Many processes add orders, run their steps, and act on them, all at once, where max_orders holds most of them back. No order is lost
// or doubled, all are where their events say, and the line moves on to its end.
func TestRivals(t *testing.T) {
	t.Parallel()
	chain := ab()
	chain.MaxOrders = 4
	const orders = 40
	b := open(t, shared{memory.New(memory.Options{})}, chains(chain))
	processes := rivals(t, b, 3)
	var group sync.WaitGroup
	for i := range orders {
		group.Go(func() {
			if _, err := processes[i%3].Add(t.Context(), nil, order.Request{Chain: "/c", ID: fmt.Sprint(i)}); err != nil {
				t.Errorf("Add: %v", err)
			}
		})
	}
	done := make(chan struct{})
	for i := range 6 {
		group.Go(func() { act(t, processes[i%3].Engine, orders, done) })
	}
	var finished sync.WaitGroup
	for i := range 6 {
		finished.Go(func() { work(t, processes[i%3].queue, done) })
	}
	go func() {
		time.Sleep(0)
		b.untilQuiet(t, processes[0].Engine, orders)
		close(done)
	}()
	group.Wait()
	finished.Wait()
	b.agree()
	b.walked(orders)
}

// act acts on orders at random until done, and resumes them all then.
func act(t *testing.T, e *order.Engine, orders int, done <-chan struct{}) {
	kinds := []order.ActKind{order.Suspend, order.Resume, order.Resume, order.Skip, order.RunNow}
	for tries := 0; tries < 60; tries++ {
		id, kind := fmt.Sprint(rand.N(orders)), kinds[rand.N(len(kinds))]
		err := e.Act(context.Background(), "/c", id, order.Act{Kind: kind})
		if err != nil && !errors.Is(err, order.ErrState) && !errors.Is(err, order.ErrNoOrder) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for {
		select {
		case <-done:
			return
		default:
		}
		for i := range orders {
			err := e.Act(context.Background(), "/c", fmt.Sprint(i), order.Act{Kind: order.Resume})
			if err != nil && !errors.Is(err, order.ErrState) && !errors.Is(err, order.ErrNoOrder) {
				t.Errorf("resume: %v", err)
			}
		}
	}
}

// work runs steps until done.
func work(t *testing.T, q *queue.Queue, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		leases, err := q.Claim(context.Background(), queue.Claimer{Instance: "i"}, 1)
		if err != nil {
			t.Errorf("Claim: %v", err)
			return
		}
		for _, l := range leases {
			if _, err := q.Complete(context.Background(), l.Token, ok); err != nil {
				t.Errorf("Complete: %v", err)
			}
		}
	}
}

// untilQuiet returns when no order is left.
func (b *bench) untilQuiet(t *testing.T, e *order.Engine, orders int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		left := 0
		for i := range orders {
			if _, err := e.Get(context.Background(), "/c", fmt.Sprint(i)); err == nil {
				left++
			}
		}
		items, err := b.store.Query(context.Background(), store.Range{Table: store.Work, Partition: "orders-of//c"})
		if err == nil && left == 0 && len(items.Items) == 0 {
			added, err := b.journal.ReadAfter(context.Background(), journal.Request{Limit: 100_000})
			if err == nil && strings.Count(fmt.Sprint(added.Events), "OrderAdded") >= orders {
				return
			}
		}
	}
	t.Error("after a minute there are still orders")
}

// walked checks the events of each order: one way from OrderAdded to OrderFinished, with each step begun once and ended once.
func (b *bench) walked(orders int) {
	b.t.Helper()
	all, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	last, counts := map[string]string{}, map[string]int{}
	steps := map[string]int{}
	for i := range all.Events {
		e := &all.Events[i]
		if e.Key.TaskID != "" {
			continue
		}
		counts[e.Type]++
		switch e.Type {
		case "OrderStepStarted":
			var f struct{ TaskID task.ID }
			_ = json.Unmarshal(fmt.Appendf(nil, "{%s}", e.Fields), &f)
			if steps[e.Key.Path]++; steps[e.Key.Path] > 1 {
				b.t.Errorf("%s: two steps at once", e.Key.Path)
			}
		case "OrderStepEnded":
			steps[e.Key.Path]--
		}
		if last[e.Key.Path] == "OrderFinished" {
			b.t.Errorf("%s: %s after its end", e.Key.Path, e.Type)
		}
		last[e.Key.Path] = e.Type
	}
	if counts["OrderAdded"] != orders || counts["OrderFinished"] != orders || counts["OrderStepStarted"] != counts["OrderStepEnded"] {
		b.t.Errorf("%v, want %d orders", counts, orders)
	}
	items, err := b.store.Get(b.t.Context(), store.Key{Table: store.Work, Partition: "places//c", Sort: "-"})
	if err != nil || string(items[0].Value) != `{"t":0}` {
		b.t.Errorf("places: %s, %v", items[0].Value, err)
	}
	t, _ := json.Marshal(counts)
	b.t.Logf("%s", t)
}
