package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// between is a store that other processes change too: something happens before the first read of a ready index, and something
// before the read that comes after that.
type between struct {
	store.Store
	beforeHead, afterHead func()
}

func (s *between) Exclusive() bool { return false }

func (s *between) Query(ctx context.Context, r store.Range) (store.Page, error) {
	switch head := r.Partition == "ready/strict"; {
	case head && s.beforeHead != nil:
		then := s.beforeHead
		s.beforeHead = nil
		then()
	case !head && s.beforeHead == nil && s.afterHead != nil:
		then := s.afterHead
		s.afterHead = nil
		then()
	}
	return s.Store.Query(ctx, r)
}

// A claimer that found the queue idle, and then the second task at its head since another claimer was just starting the first, does
// not start it if the first has failed meanwhile and is back at its place.
func TestNothingOvertakesBetweenTwoReads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	process := func(s store.Store) *queue.Queue {
		j := journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
		t.Cleanup(func() { _ = j.Close() })
		return queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set()}, Now: b.clock.now})
	}
	other := process(&between{Store: b.store})
	slow := &between{Store: b.store}
	var first queue.Lease
	slow.beforeHead = func() {
		leases, err := other.Claim(t.Context(), queue.Claimer{Instance: "other"}, 1)
		if err != nil || len(leases) != 1 {
			t.Fatalf("Claim = %v, %v, want the first task", leases, err)
		}
		first = leases[0]
	}
	slow.afterHead = func() {
		if state, err := other.Complete(t.Context(), first.Token, queue.Result{Outcome: queue.Failed}); err != nil || state != task.Waiting {
			t.Fatalf("Complete = %v, %v, want %v", state, err, task.Waiting)
		}
	}
	for range 2 {
		if _, err := other.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/strict"}); err != nil {
			t.Fatal(err)
		}
	}
	leases, err := process(slow).Claim(t.Context(), queue.Claimer{Instance: "slow"}, 1)
	if err != nil || len(leases) != 0 {
		t.Errorf("Claim = %v, %v, want nothing: the first task waits for its next attempt", leases, err)
	}
	if first.Token == "" || slow.afterHead != nil {
		t.Error("the test did not come between")
	}
}

// TestWhoWaitsBehindAStoppedTaskIsWoken: the first task of an ordered queue waits for its next attempt, and is stopped or removed.
func TestWhoWaitsBehindAStoppedTaskIsWoken(t *testing.T) {
	t.Parallel()
	acts := map[string]func(b *bench, id task.ID) error{
		"stop":   func(b *bench, id task.ID) error { _, err := b.Stop(b.t.Context(), id); return err },
		"remove": func(b *bench, id task.ID) error { return b.Remove(b.t.Context(), id) },
	}
	for name, act := range acts {
		b := setupWith(t, &definition.Set{Queues: []definition.Queue{{Name: "row", Type: definition.Ordered}}})
		first := b.one(queue.New{Dialect: task.Job, Job: "/topics/a", Queue: "row", Attempts: 2})
		second := b.one(queue.New{Dialect: task.Job, Job: "/topics/b", Queue: "row"})
		b.complete(b.byInstance(1)[0], queue.Result{Outcome: queue.Failed, RetryDelay: time.Hour})
		w := b.Wait(queue.Claimer{Instance: "w/1", Jobs: []string{"/topics/**"}})
		if early := b.byInstance(1); len(early) > 0 {
			t.Fatalf("claimed %v, behind one that waits for its next attempt", ids(early))
		}
		if err := act(b, first); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Ready():
		default:
			t.Errorf("%s: who waits for the task behind was not woken", name)
		}
		w.End()
		if got := b.byInstance(1); len(got) != 1 || got[0].Task.ID != second {
			t.Errorf("%s: claimed %v, want the task behind", name, ids(got))
		}
	}
}
