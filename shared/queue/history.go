package queue

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/overview"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The history of topics (seed 004) lies in sixteen groups, each in the order of the ends; that of all other jobs is their lists,
// in the order of creation. A sweep looks at a sixteenth of both, each minute at the next, and at those where the one before left
// something: one read a minute for the topics, one for each of those lists that has something finished in it, and a snapshot to
// know them. A task goes within 16 minutes of its time. What is removed costs up to 6 WCU and a share of a slot for each task, and
// a look for its log.

const (
	historyRounds = len(topicShards) // sweeps until all was looked at
	historySweep  = 1000             // tasks that one sweep looks at in one group, at most
	historyBatch  = 20               // tasks that one write removes
)

// cleanHistory sweeps the history each minute, and at once again where a sweep has removed as much as it may, until ctx ends. It
// goes beside what [Queue.Run] does at its time.
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

// sweepHistory removes tasks that were finished longer ago than the history is kept.
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
	sweep := func(group string, turn int, r store.Range, old func(*store.Item) (uuid string, err error)) error {
		from, left := q.leftover.take(group)
		if !left && turn != round {
			return nil
		}
		r.Table, r.From, r.Limit, r.Eventual = store.Work, from, historyBatch, true
		n, err := q.sweepGroup(ctx, group, r, old)
		removed += n
		return err
	}
	for i, group := range topicGroups() {
		r := store.Range{Partition: historyPartition(group), To: stamp(before)}
		if err := sweep(group, i, r, func(entry *store.Item) (string, error) { return entry.Key.Sort[stampLen:], nil }); err != nil {
			return removed, err
		}
	}
	for _, group := range lists {
		hash := task.GroupHash(group)
		r := store.Range{Partition: groupPartition(hash), To: task.FirstUUID(before)}
		if err := sweep(group, int(hash%uint32(historyRounds)), r, finishedBefore(before)); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// finishedBefore returns the UUIDs of tasks that were finished before a time, "" for others.
func finishedBefore(before int64) func(item *store.Item) (uuid string, err error) {
	return func(item *store.Item) (string, error) {
		var t task.Task
		if err := decode(item, &t); err != nil || !t.State.Final() || t.Finished >= before {
			return "", err
		}
		return t.ID.UUID(), nil
	}
}

// sweepGroup removes what is old in a range. Where it does not come to the end, the next sweep goes on: many tasks that stay keep
// it from none.
func (q *Queue) sweepGroup(ctx context.Context, group string, r store.Range, old func(*store.Item) (uuid string, err error)) (removed int, err error) {
	for looked := 0; looked < historySweep; looked += historyBatch {
		page, err := q.store.Query(ctx, r)
		if err != nil {
			return removed, unavailable("read the history", err)
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
			return removed, unavailable("clean the history", err)
		}
		r.From = page.Items[len(page.Items)-1].Key.Sort + "\x00"
	}
	q.leftover.put(group, r.From)
	return removed, nil
}

// leftover is where the sweeps before have stopped, by the group.
type leftover struct {
	mu   sync.Mutex
	from map[string]string
}

func (l *leftover) put(group, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == nil {
		l.from = map[string]string{}
	}
	l.from[group] = from
}

func (l *leftover) take(group string) (from string, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, left = l.from[group]
	delete(l.from, group)
	return from, left
}

// listGroups returns the groups of lists that have something finished in them, but for those of topics.
func (q *Queue) listGroups(ctx context.Context) ([]string, error) {
	groups := map[string]bool{}
	_, err := q.journal.Snapshot(ctx, overview.TaskCountsName, func(path string, value []byte) {
		if strings.HasPrefix(path, topicRoot) {
			return
		}
		for state := range overview.ReadTaskCounts(value) {
			if task.State(state).Final() {
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
	f := forgetting{q: q, keys: make([]store.Key, len(uuids))}
	for i, uuid := range uuids {
		f.keys[i] = taskKey(uuid)
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
		f.gone, events, ops = append(f.gone, t.ID.UUID()), append(events, forgotten(&t)), append(ops, forget(&t, item.Version)...)
	}
	if len(f.gone) == 0 {
		return journal.Change{}, errNothing
	}
	return journal.Change{Events: events, Ops: func(journal.Receipt) []store.Op { return ops }}, nil
}
