package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// purgeBatch is how many tasks one write of a purge drops, so that the write has space for their entries too.
const purgeBatch = MaxBatch - 4

// listPage is how many entries of an index are read at once.
const listPage = 250

// Purge drops all queued tasks of a queue, or of a family of queues by its name with {0}, and returns how many it has dropped.
// Running tasks go on. Tasks that are enqueued meanwhile may be dropped or not. Each batch is one write; after an error, dropped
// says how many are gone.
func (q *Queue) Purge(ctx context.Context, name string) (dropped int, err error) {
	indexes, err := q.indexesOf(ctx, name)
	if err != nil {
		return 0, err
	}
	means, err := q.meant(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, index := range indexes {
		n, err := q.purgeIndex(ctx, index, means)
		dropped += n
		if err != nil {
			return dropped, layout.Failure("purge a queue", err)
		}
	}
	return dropped, nil
}

// indexesOf returns the partitions in which entries of a queue may be. The ready indexes come last, since entries move from the due
// and held ones to these.
func (q *Queue) indexesOf(ctx context.Context, name string) ([]string, error) {
	lines, err := q.linesOf(ctx, name)
	if err != nil {
		return nil, err
	}
	indexes := []string{layout.PartitionDue}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionHolds}) {
		if err != nil {
			return nil, layout.Failure("read the holds", err)
		}
		indexes = append(indexes, layout.HeldPartition(string(item.Value)))
	}
	for _, l := range lines {
		parts, err := layout.PartsOf(ctx, q.store, l)
		if err != nil {
			return nil, err
		}
		indexes = append(indexes, parts...)
	}
	return indexes, nil
}

// purgeIndex drops the tasks that have an entry in an index, of the queues for which means returns true.
func (q *Queue) purgeIndex(ctx context.Context, index string, means func(queue string) bool) (dropped int, err error) {
	batch := make([]layout.Place, 0, purgeBatch)
	for p, err := range layout.Entries(ctx, q.store, store.Range{Table: store.Work, Partition: index, Limit: listPage}) {
		if err != nil {
			return dropped, err
		}
		if means(p.Queue) {
			batch = append(batch, p)
		}
		if len(batch) < purgeBatch {
			continue
		}
		n, err := q.dropAll(ctx, batch)
		dropped += n
		if err != nil {
			return dropped, err
		}
		batch = batch[:0]
	}
	if len(batch) == 0 {
		return dropped, nil
	}
	n, err := q.dropAll(ctx, batch)
	return dropped + n, err
}

// dropAll drops the tasks of entries that still count, and removes these entries, in one write.
func (q *Queue) dropAll(ctx context.Context, batch []layout.Place) (int, error) {
	uuids := make([]string, len(batch))
	for i := range batch {
		uuids[i] = batch[i].UUID
	}
	var steps []task.ID
	dropped, err := q.changeAll(ctx, uuids, func(i int, item *store.Item, t *task.Task) ([]event.Event, []store.Op) {
		if t.Order != nil {
			steps = append(steps, t.ID)
			return nil, nil
		}
		if item.Version != batch[i].Of || !q.endQueued(t, task.Drop) {
			return nil, nil // the entry is stale
		}
		t.Message = purged
		entry := layout.Remove(batch[i].At, batch[i].Version)
		return causedAt(item.Version, append(finished(t, task.Drop), removed(t))...), append(layout.Conclude(t, false, store.VersionIs(item.Version)), entry)
	})
	if err != nil {
		return 0, err
	}
	gone, err := q.dropSteps(ctx, steps)
	return len(dropped) + gone, err
}

// dropSteps drops tasks that are orders' steps, one after the other: the end of each changes its order too.
func (q *Queue) dropSteps(ctx context.Context, ids []task.ID) (dropped int, err error) {
	for _, id := range ids {
		switch err := q.finish(ctx, id, task.Drop, purged); {
		case err == nil:
			dropped++
		case !errors.Is(err, ErrFinished) && !errors.Is(err, errRunning) && !errors.Is(err, ErrNoTask):
			return dropped, err
		}
	}
	return dropped, nil
}

const purged = "its queue was purged"

// endQueued ends a task by a step if it is queued, and reports whether it was.
func (q *Queue) endQueued(t *task.Task, step task.Step) bool {
	if !t.State.Queued() {
		return false
	}
	t.State, _ = t.State.After(step) // every queued state has it
	t.Finished = q.micro()
	return true
}

// changeAll changes tasks in one write, and returns the UUIDs of those that it has changed. For each task that exists, change returns
// events and operations, or none for one that stays. Race: if another process changes one of the tasks meanwhile, the condition on its
// version fails, and all are read again.
func (q *Queue) changeAll(ctx context.Context, uuids []string, change func(i int, item *store.Item, t *task.Task) ([]event.Event, []store.Op)) (changed []string, err error) {
	keys := make([]store.Key, len(uuids))
	for i, uuid := range uuids {
		keys[i] = layout.TaskKey(uuid)
	}
	err = q.commit(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		items, err := q.store.Get(ctx, keys...)
		if err != nil {
			return journal.Change{}, layout.Failure("read tasks", err)
		}
		changed = nil
		var c journal.Change
		var ops []store.Op
		for i, item := range items {
			if item == nil {
				continue
			}
			var t task.Task
			if err := layout.Decode(item, &t); err != nil {
				return journal.Change{}, err
			}
			if events, own := change(i, item, &t); len(events) > 0 {
				c.Events, ops, changed = append(c.Events, events...), append(ops, own...), append(changed, uuids[i])
			}
		}
		if len(changed) == 0 {
			return journal.Change{}, errNothing
		}
		c.Ops = func(journal.Receipt) []store.Op { return slices.Clone(ops) }
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}
