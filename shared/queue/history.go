package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The history of topics lies in sixteen groups, each ordered by the time of the end; the history of other jobs is their lists,
// ordered by creation. Each minute a sweep reads the next sixteenth of both, and the groups that the sweep before did not finish:
// one read for the topics, one for each of those lists that has a finished task, and a snapshot that says which have. A task is
// removed within 16 minutes of its time. Removing a task costs up to 6 WCU, a share of a slot, and a read for its log.

const (
	historyRounds = len(layout.TopicShards) // sweeps until all groups were read
	historySweep  = 1000                    // the most tasks that one sweep reads in one group
	historyBatch  = 20                      // the most tasks that one write removes

	// historyFor is how long a [Queue.Sweep] goes on as long as it reads that many: it has a minute, or some seconds, until the next.
	historyFor = 10 * time.Second
)

// cleanHistory sweeps the history each minute, and again at once after a sweep that has removed historySweep tasks or more, until
// ctx ends. It runs concurrently with the other work of [Queue.Run].
func (q *Queue) cleanHistory(ctx context.Context) {
	if q.history <= 0 {
		return
	}
	minute := time.NewTicker(sweepEvery)
	defer minute.Stop()
	for ctx.Err() == nil {
		removed, err := q.sweepHistory(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			q.log.Warn("the history was not cleaned; it is tried again", "error", err)
		}
		if err == nil && removed >= historySweep {
			continue
		}
		select {
		case <-minute.C:
		case <-ctx.Done():
		}
	}
}

// sweepHistory removes tasks that finished more than Options.History ago, in this minute's groups and in those left over.
func (q *Queue) sweepHistory(ctx context.Context) (removed int, err error) {
	if q.history <= 0 {
		return 0, nil
	}
	lists, err := q.listGroups(ctx)
	if err != nil {
		return 0, err
	}
	round := int(q.micro() / time.Minute.Microseconds() % int64(historyRounds))
	before := q.micro() - q.history.Microseconds()
	sweep := func(group string, parts []string, turn int, r store.Range, old func(*store.Item) (uuid string, err error)) error {
		at, left := q.leftover.LoadAndDelete(group)
		if !left && turn != round {
			return nil
		}
		from, _ := at.(string)
		r.Table, r.From, r.Limit, r.Eventual = store.Work, from, historyBatch, true
		n, err := q.sweepGroup(ctx, group, parts, r, old)
		removed += n
		return err
	}
	for i, group := range layout.TopicGroups() {
		r := store.Range{To: layout.Stamp(before)}
		if err := sweep(group, []string{layout.HistoryPartition(group)}, i, r, func(entry *store.Item) (string, error) { return entry.Key.Sort[layout.StampLen:], nil }); err != nil {
			return removed, err
		}
	}
	for _, group := range lists {
		hash := task.GroupHash(group)
		r := store.Range{To: task.FirstUUID(before)}
		if err := sweep(group, nil, int(hash%uint32(historyRounds)), r, finishedBefore(before)); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// finishedBefore returns a function that returns the UUID of a task that finished before a time, and "" for other tasks.
func finishedBefore(before int64) func(item *store.Item) (uuid string, err error) {
	return func(item *store.Item) (string, error) {
		var t task.Task
		if err := layout.Decode(item, &t); err != nil || !t.State.Final() || t.Finished >= before {
			return "", err
		}
		return t.ID.UUID(), nil
	}
}

// sweepGroup removes the old tasks of a range of partitions; nil: those of a group's tasks. If it does not reach the end, the next sweep goes on from there, so that it gets
// past any number of tasks that are kept.
func (q *Queue) sweepGroup(ctx context.Context, group string, parts []string, r store.Range, old func(*store.Item) (uuid string, err error)) (removed int, err error) {
	if parts == nil {
		of, err := layout.GroupPartitions(ctx, q.store, group)
		if err != nil {
			return 0, err
		}
		parts = of[0]
	}
	for looked := 0; looked < historySweep; looked += historyBatch {
		page, err := layout.QueryParts(ctx, q.store, parts, r)
		if err != nil {
			return removed, layout.Failure("read the history", err)
		}
		var uuids []string
		for i := range page.Items {
			uuid, err := old(&page.Items[i])
			if err != nil {
				return removed, err
			}
			if uuid != "" {
				uuids = append(uuids, uuid)
			}
		}
		n, err := q.forgetAll(ctx, uuids)
		removed += n
		if err != nil || !page.More || len(page.Items) == 0 {
			return removed, layout.Failure("clean the history", err)
		}
		r.From = page.Items[len(page.Items)-1].Key.Sort + "\x00"
	}
	q.leftover.Store(group, r.From)
	return removed, nil
}

// listGroups returns the groups, except those of topics, that have finished tasks.
func (q *Queue) listGroups(ctx context.Context) ([]string, error) {
	groups := map[string]bool{}
	_, err := q.journal.Snapshot(ctx, projection.TaskCountsName, func(path string, value []byte) {
		if strings.HasPrefix(path, layout.TopicRoot) {
			return
		}
		for state := range projection.ReadTaskCounts(value) {
			if state.Final() {
				groups[listOf(path)] = true
			}
		}
	})
	return sortedKeys(groups), err
}

// forgetAll removes finished tasks, in one write, and then their logs.
func (q *Queue) forgetAll(ctx context.Context, uuids []string) (removed int, err error) {
	if len(uuids) == 0 {
		return 0, nil
	}
	gone, err := q.changeAll(ctx, uuids, func(_ int, item *store.Item, t *task.Task) ([]event.Event, []store.Op) {
		if !t.State.Final() || t.UniqueUntil > q.micro() {
			return nil, nil // it still holds its unique key
		}
		return causedAt(item.Version, forgotten(t)), layout.Forget(t, item.Version)
	})
	for _, uuid := range gone {
		if err := tasklog.Drop(ctx, q.store, uuid); err != nil {
			return len(gone), err
		}
	}
	return len(gone), err
}
