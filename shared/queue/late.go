package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A schedule makes the task of a tick ahead of its time, when nobody knows whether another task of the job will be under way by then. So where a job
// has one task at a time, a tick takes the unique key as its time comes, or is dropped then. Ticks that are asked for together wait for each other,
// and take it as they start.

// fallDue makes ticks ready whose time has come, those that want the same key one after the other.
func (q *Queue) fallDue(ctx context.Context, ticks []layout.Place) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	byKey := map[string][]layout.Place{}
	for _, p := range ticks {
		byKey[p.Late] = append(byKey[p.Late], p)
	}
	var group sync.WaitGroup
	room, errs := make(chan struct{}, 32), make(chan error, len(ticks))
	for _, own := range byKey {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			for _, p := range own {
				errs <- q.fallOneDue(ctx, set, p)
			}
		})
	}
	group.Wait()
	close(errs)
	for each := range errs {
		err = errors.Join(err, each)
	}
	return err
}

// fallOneDue makes a tick ready that has the unique key now, or drops it. Race: where another process does the same, one of the two writes conflicts,
// and what is read then says so.
func (q *Queue) fallOneDue(ctx context.Context, set *definition.Set, p layout.Place) error {
	var ready *layout.Place
	stale := false
	err := q.commit(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		ready, stale = nil, false
		t, version, err := layout.LoadTask(ctx, q.store, p.UUID)
		if err != nil && !errors.Is(err, ErrNoTask) {
			return journal.Change{}, err
		}
		if err != nil || version != p.Of || !t.State.Queued() {
			stale = true
			return journal.Change{}, errNothing
		}
		entry := layout.Remove(p.At, p.Version)
		k, err := q.lookUpKey(ctx, &t)
		switch {
		case err != nil:
			return journal.Change{}, err
		case k.holder == t.ID: // another process was quicker, or the tick begins again
			stale = true
			return journal.Change{}, errNothing
		case k.holder != "":
			q.endQueued(&t, task.Drop)
			t.Message = underWay(k.holder)
			ops := append(layout.Conclude(&t, false, store.VersionIs(version)), entry)
			return journal.Change{Events: causedAt(version, finished(&t, task.Drop)...), Ops: func(journal.Receipt) []store.Op { return ops }}, nil
		}
		e := p.Entry
		e.Settle(set)
		at, err := q.readyKey(ctx, set.QueueOf(e.Queue), e)
		if err != nil {
			return journal.Change{}, err
		}
		place := layout.PlaceAt(at, e)
		ready = &place
		added, err := q.journal.EventsAt(ctx, version)
		if err != nil {
			return journal.Change{}, err
		}
		due := typed.ScheduleDue{At: t.ID.Time()}.Event(t.Schedule)
		due.Cause = event.CausedBy(event.LastOf(added, keyOf(&t)))
		ops := append(k.take(t.ID), entry, ready.Put(store.Always), store.Check(layout.TaskKey(p.UUID), store.VersionIs(version)))
		return journal.Change{Events: []event.Event{due}, Ops: func(journal.Receipt) []store.Op { return ops }}, nil
	})
	switch {
	case err != nil:
		return layout.Failure("make a tick ready", err)
	case stale: // what is no task's entry any more is removed by a claim
		return q.moveIn(ctx, set, p.Queue, []layout.Place{p})
	case ready != nil:
		q.announce(ctx, []*layout.Place{ready})
	}
	return nil
}

// uniqueKey is the unique key that a task wants.
type uniqueKey struct {
	at     store.Key
	holder task.ID         // the task that has it; "": it may be taken
	cond   store.Condition // of its item, if it may be taken
	guard  store.Op        // see guardHolder; of kind 0 if there is nothing to guard
}

// lookUpKey reads who has the unique key of a task.
func (q *Queue) lookUpKey(ctx context.Context, t *task.Task) (k uniqueKey, err error) {
	k.at = layout.UniqueKey(t.Job, t.Unique)
	items, err := q.store.Get(ctx, k.at)
	if err != nil {
		return k, layout.Failure("look up a unique key", err)
	}
	if items[0] == nil {
		k.cond = store.Absent
		return k, nil
	}
	id := task.ID(items[0].Value)
	holder, seen, err := layout.LoadTask(ctx, q.store, id.UUID())
	switch {
	case err != nil && !errors.Is(err, ErrNoTask):
		return k, err
	case err == nil && !holder.State.Final():
		k.holder = id
		return k, nil
	}
	k.cond, k.guard = store.VersionIs(items[0].Version), guardHolder(items[0], seen)
	return k, nil
}

// take returns the operations that take the key.
func (k *uniqueKey) take(id task.ID) []store.Op {
	ops := []store.Op{store.Put(store.Item{Key: k.at, Value: []byte(id)}, k.cond)}
	if k.guard.Kind != 0 {
		ops = append(ops, k.guard)
	}
	return ops
}

// underWay says why a tick is dropped.
func underWay(holder task.ID) string { return "another one was under way: " + string(holder) }
