package queue

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The history of topics (seed 004) lies in sixteen groups, each in the order of the ends. A sweep looks at one of them, each
// minute at the next: one read a minute where there is nothing to remove, and a task goes within 16 minutes of its time. What
// is removed costs up to 6 WCU and a share of a slot for each task, and a look for its log.

const (
	historySweep = 1000 // tasks that one sweep removes at most
	historyBatch = 20   // tasks that one write removes
)

// sweepHistory removes tasks of topics that were finished longer ago than the history is kept.
func (q *Queue) sweepHistory(ctx context.Context) (removed int, err error) {
	if q.history <= 0 {
		return 0, nil
	}
	groups := topicGroups()
	r := store.Range{
		Table: store.Work, Partition: historyPartition(groups[q.micro()/time.Minute.Microseconds()%int64(len(groups))]),
		To: stamp(q.micro() - q.history.Microseconds()), Limit: historyBatch, Eventual: true,
	}
	for looked := 0; looked < historySweep; {
		page, err := q.store.Query(ctx, r)
		if err != nil || len(page.Items) == 0 {
			return removed, unavailable("read the history", err)
		}
		n, err := q.forgetAll(ctx, page.Items)
		removed += n
		if err != nil || !page.More {
			return removed, unavailable("clean the history", err)
		}
		looked += len(page.Items)
		r.From = page.Items[len(page.Items)-1].Key.Sort + "\x00"
	}
	return removed, nil
}

// forgetAll removes the tasks of entries of the history, in one write, and then their logs.
func (q *Queue) forgetAll(ctx context.Context, entries []store.Item) (removed int, err error) {
	f := forgetting{q: q, keys: make([]store.Key, len(entries))}
	for i := range entries {
		f.keys[i] = taskKey(entries[i].Key.Sort[stampLen:])
	}
	_, err = q.journal.Write(ctx, f.prepare)
	if errors.Is(err, errNothing) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, uuid := range f.gone {
		if err := q.dropLog(ctx, uuid); err != nil {
			return len(f.gone), err
		}
	}
	return len(f.gone), nil
}

// forgetting is the removal of some finished tasks.
type forgetting struct {
	q    *Queue
	keys []store.Key
	gone []string // their UUIDs
}

// prepare reads the tasks. Race: who removes one of them first refuses the write, which then looks again.
func (f *forgetting) prepare(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
	items, err := f.q.store.Get(ctx, f.keys...)
	if err != nil {
		return journal.Change{}, unavailable("read finished tasks", err)
	}
	f.gone = f.gone[:0]
	var events []event.Event
	var ops []store.Op
	for _, item := range items {
		if item == nil {
			continue // somebody else has removed it
		}
		var t task.Task
		if err := decode(item, &t); err != nil {
			return journal.Change{}, err
		}
		if !t.State.Final() || t.UniqueUntil > f.q.micro() {
			continue // it holds its unique key still
		}
		f.gone, events, ops = append(f.gone, t.ID.UUID()), append(events, removed(&t)), append(ops, forget(&t, item.Version)...)
	}
	if len(f.gone) == 0 {
		return journal.Change{}, errNothing
	}
	return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op { return ops }}, nil
}
