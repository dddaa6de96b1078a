package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
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
)

// TestCallersLeaveAtAnyMoment: the contexts of waiting callers end, as the connections of killed workers do, in the middle of
// promotions and of starts. Without any sweep, every task ends, and each completion is accepted.
func TestCallersLeaveAtAnyMoment(t *testing.T) {
	t.Parallel()
	q := openPebble(t, 0)
	const attempts = 30
	tasks := 300
	if testing.Short() {
		tasks /= 3
	}
	for range tasks {
		if _, err := q.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Queue: "main", Attempts: attempts}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	var ended atomic.Int64
	all := make(chan struct{})
	for range 12 {
		group.Go(func() {
			for ctx.Err() == nil {
				patience := time.Second
				if rand.N(8) > 0 {
					patience = rand.N(2 * time.Millisecond)
				}
				for _, l := range claimFor(ctx, q, patience) {
					r := queue.Result{Outcome: queue.Failed, RetryDelay: 1 + rand.N(3*time.Millisecond)}
					if l.Task.Attempt == attempts {
						r.Outcome = queue.OK
					}
					if _, err := q.Complete(context.WithoutCancel(ctx), l.Token, r); err != nil {
						t.Errorf("Complete = %v", err)
					}
					if r.Outcome == queue.OK && ended.Add(1) == int64(tasks) {
						close(all)
					}
				}
			}
		})
	}
	select {
	case <-all:
	case <-time.After(5 * time.Minute):
		t.Errorf("%d of %d tasks have ended, and the others do not", ended.Load(), tasks)
	}
}

// claimFor claims, and waits for tasks up to a time.
func claimFor(ctx context.Context, q *queue.Queue, patience time.Duration) []queue.Lease {
	by := queue.Claimer{Instance: "i", Jobs: []string{"/topics/**"}}
	ctx, leave := context.WithTimeout(ctx, patience)
	defer leave()
	w := q.Wait(by)
	leases, err := q.Claim(ctx, by, 4)
	if err != nil || len(leases) > 0 {
		w.End()
		return leases
	}
	select {
	case <-w.Ready():
		w.Looks()
	case <-ctx.Done():
		w.End()
	}
	return nil
}

// hanging is a store whose reads of the line "row" wait, once it is on, until it is released.
type hanging struct {
	store.Store
	on      atomic.Bool
	release chan struct{}
}

func (s *hanging) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if s.on.Load() && strings.HasPrefix(r.Partition, "ready/row") {
		<-s.release
	}
	return s.Store.Query(ctx, r)
}

// A claim that waits for another claim of its queue leaves with its context, and notifies others of the queue.
func TestAClaimThatWaitsForItsQueueLeavesInTime(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]definition.Queue{
		"ordered": {Name: "row", Type: definition.Ordered}, "with a limit": {Name: "row", MaxParallel: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := ways()
				d.Jobs = append(d.Jobs, definition.Job{Path: "/row", Queue: "row", Target: definition.Target{Go: "f"}})
				d.Queues = append(d.Queues, q)
				b := setupWith(t, d)
				b.clock.t = time.Now()
				b.one(queue.New{Job: "/row"})
				b.one(queue.New{Job: "/row"})
				s := &hanging{Store: b.store, release: make(chan struct{})}
				j := journal.Open(s, journal.Options{Folds: projection.Folds()})
				defer func() { _ = j.Close() }()
				notices := tally{}
				e := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{d}, Notifier: notices})
				by := queue.Claimer{Instance: "s", Queues: []string{"row"}}
				if _, err := e.Claim(t.Context(), queue.Claimer{Queues: []string{"main"}}, 1); err != nil { // it reads what all claims do
					t.Fatal(err)
				}
				s.on.Store(true)
				first := make(chan int)
				go func() {
					leases, err := e.Claim(t.Context(), by, 1)
					if err != nil {
						t.Error(err)
					}
					first <- len(leases)
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				if _, err := e.Claim(ctx, by, 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
					t.Errorf("Claim = %v after %v, want %v after a second", err, time.Since(began), context.DeadlineExceeded)
				}
				if notices["row"] == 0 {
					t.Error("nobody is notified of the queue")
				}
				close(s.release)
				if n := <-first; n != 1 {
					t.Errorf("the first claim started %d tasks, want 1", n)
				}
			})
		})
	}
}
