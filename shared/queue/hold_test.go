package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// interrupted is a store that calls functions just before the first write that starts a task, and after it.
type interrupted struct {
	store.Store
	meanwhile, then func()
}

// Write writes after what happens meanwhile.
func (i *interrupted) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, isStart) && i.meanwhile != nil {
		act := i.meanwhile
		i.meanwhile = nil
		act()
		if i.then != nil {
			defer i.then()
		}
	}
	return i.Store.Write(ctx, w)
}

// isStart reports whether an operation starts a task.
func isStart(op store.Op) bool {
	var t task.Task
	return op.Kind == store.OpPut && strings.HasPrefix(op.Item.Key.Partition, "task/") && layout.Decode(&op.Item, &t) == nil && t.State == task.Running
}

// One process holds a task while another, which has not read the rule yet, starts it. The task waits again; then the rule is
// removed. The held entry is stale, and must not replace the new one.
func TestAnOldEntryNeverReplacesANewerOneOfItsTask(t *testing.T) {
	t.Parallel()
	here := setupWith(t, ways()).another()
	line := &interrupted{Store: here.store}
	j := journal.Open(line, journal.Options{Now: here.clock.now, Folds: projection.Folds()})
	there := &bench{t: t, store: line, journal: j, clock: here.clock}
	there.Queue = queue.Open(queue.Options{Store: line, Journal: j, Definitions: fixed{ways()}, Now: here.clock.now})
	id := here.one(queue.New{Job: "/plain", Attempts: 2})
	line.meanwhile = func() {
		here.rule("/plain", rule.Pause)
		here.claim(1) // moves it away
	}
	leases := there.claim(1)
	if len(leases) != 1 {
		t.Fatal("the task was not started")
	}
	if state := there.complete(leases[0], queue.Result{Outcome: queue.Failed}); state != task.Ready {
		t.Fatalf("the task is %s, want %s", state, task.Ready)
	}
	if err := here.SetRule(t.Context(), "/plain", rule.Pause, false); err != nil {
		t.Fatal(err)
	}
	if leases := here.claim(1); len(leases) != 1 || leases[0].Task.ID != id {
		t.Errorf("the claim answers %d leases, want that of the task that came back", len(leases))
	}
}

// A slot of a concurrency key that is freed for a task that has been stopped meanwhile goes to the next one.
func TestAFreedSlotIsPassedOn(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		var ids []task.ID
		for range 3 {
			ids = append(ids, b.one(queue.New{Job: "/plain", Concurrency: &task.Concurrency{Key: "k", Limit: 1}}))
		}
		first := b.claim(3)
		if _, err := b.Stop(t.Context(), ids[1]); err != nil {
			t.Fatal(err)
		}
		b.complete(first[0], queue.Result{Outcome: queue.OK})
		leases := append(b.claim(1), b.claim(1)...) // the first of them meets the stopped task
		if len(leases) != 1 || leases[0].Task.ID != ids[2] {
			t.Errorf("claimed %+v, want the third task", leases)
		}
	})
}

// A slot of a concurrency key is not kept for tasks of a suspended queue, however many are first: the next of another queue gets it.
// They run after the queue is resumed, still one at a time.
func TestASlotIsNotKeptForASuspendedQueue(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		key := &task.Concurrency{Key: "k", Limit: 1}
		b.one(queue.New{Job: "/plain", Concurrency: key})
		first := b.demandClaim(1, 1, "the slot is free")
		const many = 65 // more than are moved at once
		for range many {
			b.one(queue.New{Job: "/few", Concurrency: key})
		}
		next := b.one(queue.New{Job: "/plain", Concurrency: key})
		b.demandClaim(100, 0, "the slot is taken, and all are held")
		if err := b.Suspend(t.Context(), "few", true); err != nil {
			t.Fatal(err)
		}
		b.complete(first[0], queue.Result{Outcome: queue.OK})
		second := b.demandClaim(100, 1, "the slot is free, and one queue goes on")
		if second[0].Task.ID != next {
			t.Fatalf("claimed %s, want %s", second[0].Task.ID, next)
		}
		if err := b.Suspend(t.Context(), "few", false); err != nil {
			t.Fatal(err)
		}
		b.demandClaim(100, 0, "the slot is taken again")
		b.complete(second[0], queue.Result{Outcome: queue.OK})
		for range many {
			b.complete(b.demandClaim(100, 1, "one at a time")[0], queue.Result{Outcome: queue.OK})
		}
	})
}
