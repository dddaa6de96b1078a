package queue

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Remove drops an unfinished task, even while it runs: its lease ends, and its worker's further calls return [ErrStale]. A finished
// task is removed from the history. The error is [ErrNoTask] if there is none.
func (q *Queue) Remove(ctx context.Context, id task.ID) error {
	r := &removal{q: q, id: id}
	if err := q.commit(ctx, r.prepare); err != nil {
		return layout.Failure("remove a task", err)
	}
	r.announce(ctx)
	return nil
}

// Drop is Remove of an unfinished task. The error is [ErrFinished] if it is finished.
func (q *Queue) Drop(ctx context.Context, id task.ID) error {
	r := &removal{q: q, id: id, unfinished: true}
	if err := q.commit(ctx, r.prepare); err != nil {
		return layout.Failure("drop a task", err)
	}
	r.announce(ctx)
	return nil
}

// removal is the removal of one task.
type removal struct {
	unfinished bool // a finished task is left

	q    *Queue
	id   task.ID
	task task.Task   // as it is removed
	held layout.Held // of a running task
	runs bool
	was  bool       // the task was finished before
	more *following // of an order's step; nil for other tasks
}

// prepare reads the task, and its lease if it runs. Race: a heartbeat, a completion or the sweep that comes first has changed the
// lease's or the task's version, and the removal has conditions on both as they were read.
func (r *removal) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	var version int64
	for try := 0; ; try++ {
		var err error
		if r.task, version, err = layout.LoadTask(ctx, r.q.store, r.id.UUID()); err != nil {
			return journal.Change{}, err
		}
		if r.task.ID != r.id {
			return journal.Change{}, ErrNoTask
		}
		if r.was, r.runs = r.task.State.Final(), r.task.State == task.Running; !r.runs {
			break
		}
		if r.held, err = layout.LoadLease(ctx, r.q.store, r.task.Lease); err == nil {
			r.task, version = r.held.Task, r.held.TaskVersion
			break
		}
		if try == tries || !errors.Is(err, ErrStale) && !errors.Is(err, ErrNoLease) {
			return journal.Change{}, err
		}
	}
	if r.was && r.unfinished {
		return journal.Change{}, ErrFinished
	}
	if r.was {
		return journal.Change{
			Events: causedAt(version, forgotten(&r.task)),
			Ops:    func(journal.Receipt) []store.Op { return layout.Forget(&r.task, version) },
		}, nil
	}
	return r.drop(ctx, version, lost)
}

// drop ends the task.
func (r *removal) drop(ctx context.Context, version int64, lost *store.Conflict) (_ journal.Change, err error) {
	t := &r.task
	t.State, _ = t.State.After(task.Drop) // every unfinished state has it
	t.Finished, t.Code = r.q.micro(), 0
	var events []event.Event
	if r.runs {
		events = append(events, ended(t, typed.Dropped))
	}
	events = causedAt(version, append(append(events, finished(t, task.Drop)...), removed(t))...)
	if t.Order != nil {
		if r.more, events, err = r.q.stepGone(ctx, t, lost, events); err != nil {
			return journal.Change{}, err
		}
	}
	return journal.Change{Events: events, Ops: func(receipt journal.Receipt) []store.Op {
		ops := append(layout.Conclude(t, false, store.VersionIs(version)), r.more.ops(receipt)...)
		if r.runs {
			ops = append(ops, r.held.GiveBack(t.Lease, true)...)
		}
		return ops
	}}, nil
}

// announce tells the worker, if it is of this process, notifies claimers of free slots, and removes the log of a task that was in
// the history.
func (r *removal) announce(ctx context.Context) {
	r.more.announce(ctx)
	switch {
	case r.runs:
		r.q.leases.drop(r.task.Lease)
		r.q.stopped.tell(r.task.Lease)
		r.q.watchers.tell(r.held.Instance)
		r.q.slotsFree(ctx, &r.held)
	case r.was:
		if err := tasklog.Drop(ctx, r.q.store, r.id.UUID()); err != nil {
			r.q.log.Warn("the log of a removed task is left", "task_id", r.id, "error", err)
		}
	default:
		r.q.notifyBehind(ctx, &r.task)
	}
}

// removed returns the event of a task that was dropped.
func removed(t *task.Task) event.Event {
	return typed.TaskRemoved{}.Event(keyOf(t))
}

// forgotten returns the event of a task that has left the history, with its last state.
func forgotten(t *task.Task) event.Event {
	return typed.TaskRemoved{State: t.State}.Event(keyOf(t))
}
