package queue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
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
