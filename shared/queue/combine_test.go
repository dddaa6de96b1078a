package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// gated is a store whose writes wait at a gate while it is shut, and that notes what is read.
type gated struct {
	store.Store
	open chan struct{} // nil: there is no gate

	mu   sync.Mutex
	read map[store.Key]int
}

func (g *gated) Write(ctx context.Context, w store.Write) error {
	if g.open != nil {
		<-g.open
	}
	return g.Store.Write(ctx, w)
}

func (g *gated) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keys {
		g.read[key]++
	}
	return g.Store.Get(ctx, keys...)
}

// TestOneThatLosesKeepsNoOtherWaiting: of ends that share a write, one is of an attempt that another process has ended meanwhile. That one
// is read again, the others are written at the second try as they were.
func TestOneThatLosesKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 9
		data := memory.New(memory.Options{})
		g := &gated{Store: shared{data}, read: map[store.Key]int{}}
		open := func(s store.Store) *bench {
			b := &bench{t: t, store: s}
			b.journal = journal.Open(s, journal.Options{Folds: projection.Folds()})
			b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{set()}})
			return b
		}
		b, other := open(g), open(shared{data})
		defer func() { _, _ = b.journal.Close(), other.journal.Close() }()
		b.enqueue(slices.Repeat([]queue.New{{Job: "/plain"}}, n)...)
		leases := b.claim(n)
		if err := other.Drop(t.Context(), leases[n-1].Task.ID); err != nil {
			t.Fatal(err)
		}

		g.open = make(chan struct{})
		clear(g.read)
		var group sync.WaitGroup
		for i, l := range leases { // two writes are under way, and the others wait
			group.Go(func() {
				_, err := b.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK})
				if gone := errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease); gone != (i == n-1) || !gone && err != nil {
					t.Errorf("end %d = %v", i, err)
				}
			})
			synctest.Wait()
		}
		close(g.open)
		group.Wait()
		for i, l := range leases {
			if times := g.read[layout.TaskKey(l.Task.ID.UUID())]; (times > 0) != (i == n-1) {
				t.Errorf("task %d was read %d times", i, times)
			}
		}
	})
}
