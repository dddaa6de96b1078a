package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// slow is a store whose first write waits until it is released, and that fails writes while it is away.
type slow struct {
	store.Store
	first  chan struct{}
	away   atomic.Bool
	writes atomic.Int64
}

func (s *slow) Write(ctx context.Context, w store.Write) error {
	if s.writes.Add(1) == 1 {
		<-s.first
	}
	if s.away.Load() {
		return store.ErrUnavailable
	}
	return s.Store.Write(ctx, w)
}

// limited returns an engine on a slow store, with n tasks in a queue that runs limit at once.
func limited(t *testing.T, n, limit int) (*queue.Queue, *slow) {
	t.Helper()
	set := ways()
	set.Queues = append(set.Queues, definition.Queue{Name: definition.MainQueue, MaxParallel: limit})
	b := setupWith(t, set)
	b.clock.t = time.Now()
	for range n {
		b.one(queue.New{Job: "/far"})
	}
	s := &slow{Store: b.store, first: make(chan struct{})}
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	return queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set}}), s
}

func far(name string) queue.Claimer { return queue.Claimer{Instance: name, Jobs: []string{"/far"}} }

// Claims of a queue with a limit do not wait for each other's writes: they share one, and still start no more than the limit.
func TestClaimsUnderALimitGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := limited(t, 20, 8)
		var group sync.WaitGroup
		var mu sync.Mutex
		started := map[task.ID]bool{}
		for n := range 11 {
			group.Go(func() {
				leases, err := q.Claim(t.Context(), far(fmt.Sprint(n)), 1)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for i := range leases {
					started[leases[i].Task.ID] = true
				}
			})
		}
		synctest.Wait()
		s.first <- struct{}{}
		group.Wait()
		if len(started) != 8 || s.writes.Load() > 2 {
			t.Errorf("%d tasks are started by %d writes, want 8 by 2 at most", len(started), s.writes.Load())
		}
	})
}

// A claimer that finds no free slot because of a start that then fails is notified, and finds the first task where it was.
func TestWhoWasTurnedAwayForAFailedStartIsWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := limited(t, 2, 1)
		failed := make(chan error)
		go func() {
			_, err := q.Claim(t.Context(), far("first"), 1)
			failed <- err
		}()
		synctest.Wait()
		w := q.Wait(far("second"))
		if leases, err := q.Claim(t.Context(), far("second"), 1); err != nil || len(leases) != 0 {
			t.Fatalf("Claim = %d leases, %v, want none: the one place is being taken", len(leases), err)
		}
		s.away.Store(true)
		s.first <- struct{}{}
		if err := <-failed; !errors.Is(err, journal.ErrUnavailable) {
			t.Fatalf("Claim = %v, want %v", err, journal.ErrUnavailable)
		}
		s.away.Store(false)
		synctest.Wait()
		select {
		case <-w.Ready():
		default:
			t.Fatal("it was not woken")
		}
		leases, err := q.Claim(t.Context(), far("second"), 2)
		if err != nil || len(leases) != 1 {
			t.Fatalf("Claim = %v, %v, want the first task", leases, err)
		}
	})
}

// A worker that goes on takes the next task that may run in the write that ends the one before, also if the first queue that it
// takes from has reached its limit.
func TestTheNextTaskIsTakenPastAFullQueue(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways())
	for range 3 {
		b.one(queue.New{Job: "/few"})
		b.one(queue.New{Job: "/plain"})
	}
	counted := &writes{Store: b.store}
	j := journal.Open(counted, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	q := queue.Open(queue.Options{Store: counted, Journal: j, Definitions: fixed{ways()}, Now: b.clock.now})
	by := queue.Claimer{Instance: "w", Queues: []string{"few", definition.MainQueue}}
	leases, err := q.Claim(t.Context(), by, 3)
	if err != nil || len(leases) != 3 || leases[2].Task.Job != "/plain" {
		t.Fatalf("Claim = %v, %v, want two of the queue that is full then, and another", leases, err)
	}
	before := counted.calls.Load()
	_, next, err := q.CompleteAndClaim(t.Context(), leases[2].Token, queue.Result{Outcome: queue.OK}, by, 1)
	if err != nil || len(next) != 1 || next[0].Task.Job != "/plain" {
		t.Fatalf("CompleteAndClaim = %v, %v, want the next of the other queue", next, err)
	}
	if n := counted.calls.Load() - before; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}
