package queue

import (
	"cmp"
	"context"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Withdraw removes tasks that were never started as if they had not been enqueued: they leave no history, and a request with the same
// id adds them again. It returns how many it has removed. It ignores tasks that run, have run, are finished or do not exist. Each
// batch is one write; after an error, Withdraw may be repeated. cause is the event that led to it, 0 if it is not known.
func (q *Queue) Withdraw(ctx context.Context, cause event.ID, ids ...task.ID) (withdrawn int, err error) {
	for batch := range slices.Chunk(ids, purgeBatch) {
		n, err := q.withdraw(ctx, cause, batch)
		withdrawn += n
		if err != nil {
			return withdrawn, layout.Failure("withdraw tasks", err)
		}
	}
	return withdrawn, nil
}

// withdraw removes tasks in one write.
func (q *Queue) withdraw(ctx context.Context, cause event.ID, ids []task.ID) (int, error) {
	uuids := make([]string, len(ids))
	for i, id := range ids {
		uuids[i] = id.UUID()
	}
	withdrawn, err := q.changeAll(ctx, uuids, func(i int, item *store.Item, t *task.Task) ([]event.Event, []store.Op) {
		if t.ID != ids[i] || t.Attempt > 0 || !q.endQueued(t, task.Drop) {
			return nil, nil
		}
		entry := layout.Remove(layout.DueKey(t.NotBefore, t.ID.UUID()), layout.EntryVersion(item.Version)) // a claim removes one that is elsewhere
		why := cmp.Or(event.CausedBy(cause), event.CausedAt(item.Version))
		return causedBy(why, closed(t), forgotten(t)), append(layout.Conclude(t, true, store.VersionIs(item.Version)), entry)
	})
	return len(withdrawn), err
}
