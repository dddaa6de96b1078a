package order_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// Three processes move orders that want locks over a bad network, and others suspend and send them elsewhere. In the end all locks are
// free.
func TestLocksOverABadNetwork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { locksOverABadNetwork(t, seed) })
		})
	}
}

func locksOverABadNetwork(t *testing.T, seed uint64) {
	chain := ab()
	chain.MaxOrders = 5
	chain.Nodes[0].Locks = []definition.NodeLock{{Name: "b"}, {Name: "a", Shared: true}}
	chain.Nodes[1].Locks = []definition.NodeLock{{Name: "a"}}
	const orders = 20
	base := shared{memory.New(memory.Options{})}
	service := faulty.NewService(base, faulty.Faults{
		Seed: seed, InTurn: true, There: faulty.Spread{Min: time.Millisecond, Max: 20 * time.Millisecond}, Back: faulty.Spread{Max: 20 * time.Millisecond},
		Timeout: time.Second, LoseRequest: 0.01, LoseAnswer: 0.01, Busy: 0.03, Twice: 0.05, Untold: true, Apart: 30 * time.Millisecond,
	}, nil)
	set := chains(chain)
	set.Locks = []definition.Lock{{Name: "a", MaxShared: 2}, {Name: "b"}}
	processes := make([]rival, 3)
	for i := range processes {
		s := service.Process(fmt.Sprint("p", i))
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		e := order.Open(order.Options{Store: s, Definitions: &declared{set}, Now: time.Now})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: &declared{set}, Now: time.Now, Steps: e})
		e.Use(q)
		processes[i] = rival{e, q}
		defer func() { _ = q.Close(); _ = j.Close() }()
	}
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, p := range processes {
		for range 2 {
			group.Go(func() { p.toil(ctx) })
		}
		group.Go(func() { p.tend(ctx) })
	}
	var adding sync.WaitGroup
	for i := range orders {
		adding.Go(func() { processes[i%3].insist(t, fmt.Sprint(i)) })
	}
	for i := range 3 {
		adding.Go(func() { processes[i].meddle(orders) })
	}
	adding.Wait()
	b := open(t, base, set)
	b.settle(processes[0].Engine, orders)
	end()
	group.Wait()
	b.agree()
	b.walked(orders)
	b.exclusive()
	for _, name := range []string{"a", "b"} {
		for _, partition := range []string{"lock/", "lock-holders/", "lock-line/"} {
			for item, err := range store.All(context.Background(), base, store.Range{Table: store.Work, Partition: partition + name}) {
				if err != nil {
					t.Fatal(err)
				}
				var l struct{ A, S, W int }
				if partition != "lock/" || json.Unmarshal(item.Value, &l) != nil || l.S != 0 || l.W != 0 {
					t.Errorf("%s%s: %s is left", partition, name, item.Value)
				}
			}
		}
	}
}

// exclusive checks that a step at A, or at B, never ran beside another.
func (b *bench) exclusive() {
	b.t.Helper()
	all, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	running := ""
	for i := range all.Events {
		e := &all.Events[i]
		switch e.Type {
		case "OrderStepStarted":
			if running != "" {
				b.t.Errorf("%s begins a step while %s runs one", e.Key.Path, running)
			}
			running = e.Key.Path
		case "OrderStepEnded":
			running = ""
		}
	}
}
