package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Withdraw removes tasks that were never started as if they had not been enqueued: they leave no history, and a request with the same
// id adds them again. It returns how many it has removed. It ignores tasks that run, have run, are finished or do not exist. Each
// batch is one write; after an error, Withdraw may be repeated.
func (q *Queue) Withdraw(ctx context.Context, ids ...task.ID) (withdrawn int, err error) {
	for batch := range slices.Chunk(ids, purgeBatch) {
		n, err := q.withdraw(ctx, batch)
		withdrawn += n
		if err != nil {
			return withdrawn, unavailable("withdraw tasks", err)
		}
	}
	return withdrawn, nil
}

// withdraw removes tasks in one write. Race: if one is started meanwhile, the condition on its version fails, and all are read again.
func (q *Queue) withdraw(ctx context.Context, ids []task.ID) (withdrawn int, err error) {
	keys := make([]store.Key, len(ids))
	for i, id := range ids {
		keys[i] = taskKey(id.UUID())
	}
	err = q.commit(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		withdrawn = 0
		items, err := q.store.Get(ctx, keys...)
		if err != nil {
			return journal.Change{}, unavailable("read tasks", err)
		}
		var events []event.Event
		var ops []store.Op
		for i, item := range items {
			if item == nil {
				continue
			}
			var t task.Task
			if err := decode(item, &t); err != nil {
				return journal.Change{}, err
			}
			if t.ID != ids[i] || !t.State.Queued() || t.Attempt > 0 {
				continue
			}
			t.State, _ = t.State.After(task.Drop) // every queued state has it
			t.Finished = q.micro()
			entry := store.Delete(dueKey(t.NotBefore, t.ID.UUID()), store.Always) // a claim removes an entry that is elsewhere
			entry.Item.Version = entryVersion(item.Version, 0)                    // outside the journal's order
			events = append(events, closed(&t), forgotten(&t))
			ops = append(append(ops, conclude(&t, true, store.VersionIs(item.Version))...), entry)
			withdrawn++
		}
		if withdrawn == 0 {
			return journal.Change{}, errNothing
		}
		return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op { return ops }}, nil
	})
	return withdrawn, err
}
