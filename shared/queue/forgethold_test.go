package queue_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// halfSeen is a store in which held entries are not visible yet, although the item of their hold is: the items of a write become
// visible one by one. Whoever writes that item waits for the write before, and all of it is visible then.
type halfSeen struct {
	store.Store
	hidden atomic.Bool
}

// Query finds no held entry while they are hidden.
func (h *halfSeen) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if h.hidden.Load() && strings.HasPrefix(r.Partition, "held/") {
		return store.Page{}, nil
	}
	return h.Store.Query(ctx, r)
}

// Write shows what is hidden if it is of a hold's item.
func (h *halfSeen) Write(ctx context.Context, w store.Write) error {
	for _, op := range w.Ops {
		if strings.HasPrefix(op.Item.Key.Partition, "holds") {
			h.hidden.Store(false)
		}
	}
	return h.Store.Write(ctx, w)
}

// A sweep that finds a hold without entries does not forget it while the write that held one is not wholly visible: nobody would release
// that entry then.
func TestAHoldIsNotForgottenBesideAnEntryThatIsNotVisibleYet(t *testing.T) {
	t.Parallel()
	here := setupWith(t, ways()).another()
	s := &halfSeen{Store: here.store}
	j := journal.Open(s, journal.Options{Now: here.clock.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	b := &bench{t: t, store: s, journal: j, clock: here.clock}
	b.Queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{ways()}, Now: here.clock.now})
	key := &task.Concurrency{Key: "k", Limit: 1}
	b.one(queue.New{Job: "/plain", Concurrency: key})
	first := b.demandClaim(1, 1, "the slot is free")
	next := b.one(queue.New{Job: "/plain", Concurrency: key})
	b.demandClaim(1, 0, "the slot is taken")
	s.hidden.Store(true)
	b.complete(first[0], queue.Result{Outcome: queue.OK})
	for range 2 {
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if leases := b.demandClaim(1, 1, "the slot is free again"); leases[0].Task.ID != next {
		t.Errorf("claimed %s, want %s", leases[0].Task.ID, next)
	}
}
