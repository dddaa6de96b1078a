package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Stop cancels a queued task at once, and requests that a running one stop; running says which of the two it was. The error is
// [ErrFinished] for a finished task, and [ErrNoTask] if there is none.
func (q *Queue) Stop(ctx context.Context, id task.ID) (running bool, err error) {
	for try := 0; ; try++ {
		err := q.finish(ctx, id, task.Stop, "")
		if !errors.Is(err, errRunning) {
			return false, err
		}
		err = q.askToStop(ctx, id)
		if store.AsConflict(err) == nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, errMoved) || try == tries {
			return true, layout.Failure("ask a task to stop", err)
		}
		q.pause(ctx)
	}
}

var (
	errRunning = errors.New("queue: the task is running")
	errMoved   = errors.New("queue: the task has changed meanwhile")
)

// finish ends a task that is queued. Its entry becomes stale, and a claim or a sweep removes it.
func (q *Queue) finish(ctx context.Context, id task.ID, step task.Step, message string) error {
	f := &finishing{q: q, task: task.Task{ID: id}, step: step, why: message}
	err := q.write(ctx, f)[0]
	if err == nil {
		f.more.announce(ctx)
		q.notifyBehind(ctx, &f.task)
	}
	return err
}

// notifyBehind notifies claimers of an ordered queue in which a task has ended that waited: others may have waited for it.
func (q *Queue) notifyBehind(ctx context.Context, t *task.Task) {
	set, err := q.definitions.Current(ctx)
	if err != nil || set.QueueOf(t.Queue).Type != definition.Ordered {
		return // the sweep notifies, if the definitions cannot be read
	}
	l, _, _ := layout.HomeOf(set, t.Queue, t.Job)
	q.notify(ctx, q.noticesFor(ctx, l))
}

// finishing is the end of one task that is queued and will not be started.
type finishing struct {
	q       *Queue
	task    task.Task // as it is written, once it is prepared; before that, as it was read, or its id alone
	version int64     // of the task as it was read; 0: it is to be read
	step    task.Step
	why     string
	more    *following // of an order's step; nil for other tasks
}

func (f *finishing) prepare(ctx context.Context, lost *store.Conflict) (_ journal.Change, err error) {
	version := f.version
	if f.version = 0; version == 0 || lost != nil {
		if f.task, version, err = layout.LoadTask(ctx, f.q.store, f.task.ID.UUID()); err != nil {
			return journal.Change{}, err
		}
	}
	switch t := &f.task; {
	case t.State.Final():
		return journal.Change{}, ErrFinished
	case t.State == task.Running:
		return journal.Change{}, errRunning
	}
	f.task.State, _ = f.task.State.After(f.step) // every queued state has it
	f.task.Finished, f.task.Message = f.q.micro(), f.why
	events := causedAt(version, finished(&f.task, f.step)...)
	if f.task.Order != nil {
		if f.more, events, err = f.q.stepGone(ctx, &f.task, lost, events); err != nil {
			return journal.Change{}, err
		}
	}
	return journal.Change{Events: events, Ops: func(r journal.Receipt) []store.Op {
		return append(layout.Conclude(&f.task, false, store.VersionIs(version)), f.more.ops(r)...)
	}}, nil
}

func (f *finishing) bounds() (ops, bytes int) {
	if f.task.Order != nil {
		return layout.MaxConclude + stepOps, 3000 + stepBytes
	}
	return layout.MaxConclude, 3000
}

func (f *finishing) touches() []string {
	return f.more.touches(&f.task, withUnique(&f.task, f.task.ID.UUID()))
}

// withUnique returns the names of a task that ends and of its unique key, if known: the end of a task may write both.
func withUnique(t *task.Task, uuid string) []string {
	if t.Unique == "" {
		return []string{uuid}
	}
	return []string{uuid, layout.UniqueKey(t.Job, t.Unique).Partition}
}

// private returns false: others may start a queued task at any time.
func (f *finishing) private() bool { return false }

// finished returns the events of a task that ends without having been started. A schedule's tick that is dropped has an event
// ScheduleSkipped too.
func finished(t *task.Task, step task.Step) []event.Event {
	events := []event.Event{closed(t)}
	if t.Schedule != "" && step == task.Drop {
		events = append(events, typed.ScheduleSkipped{At: t.ID.Time(), Reason: t.Message}.Event(t.Schedule))
	}
	return events
}

// askToStop marks the lease of a running task as asked to stop; its worker learns of that by its next heartbeat, or at once if
// it is of this process.
func (q *Queue) askToStop(ctx context.Context, id task.ID) error {
	t, _, err := layout.LoadTask(ctx, q.store, id.UUID())
	if err != nil {
		return err
	}
	if t.State != task.Running {
		return errMoved
	}
	h, err := layout.LoadLease(ctx, q.store, t.Lease)
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
		return errMoved
	}
	if err != nil || h.Stop {
		return err
	}
	next := h.Lease
	next.Stop, next.StopBy = true, journal.Actor(ctx)
	err = q.apply(ctx, h.Change(t.Lease, &next)...)
	if err == nil {
		q.leases.madeItem(t.Lease, next.Expires)
		q.stopped.tell(t.Lease)
		q.watchers.tell(h.Instance)
	}
	return err
}

// Retry enqueues a finished task that did not succeed again, as a new task with all its attempts; if another task holds its
// unique key, it returns that one. once is as for [Queue.Enqueue], also if the task has left the history since. The error is
// [ErrUnfinished], [ErrSucceeded] or [ErrStep] if the task cannot be retried, and [ErrNoTask] if there is none.
func (q *Queue) Retry(ctx context.Context, once *Once, id task.ID) (Enqueued, error) {
	t, version, err := layout.FindTask(ctx, q.store, id)
	switch {
	case errors.Is(err, ErrNoTask) && once != nil:
		return q.retried(ctx, once)
	case err != nil:
		return Enqueued{}, err
	case !t.State.Final():
		return Enqueued{}, ErrUnfinished
	case t.State == task.Succeeded:
		return Enqueued{}, ErrSucceeded
	case t.Order != nil:
		return Enqueued{}, fmt.Errorf("%w: it is a step of the order %s; resume that instead", ErrStep, t.Order.Path())
	}
	last, err := q.journal.EventsAt(ctx, version)
	if err != nil {
		return Enqueued{}, err
	}
	return q.Enqueue(ctx, once, New{
		Cause: event.LastOf(last, keyOf(&t)), again: true,
		Dialect: t.Dialect, Job: t.Job, Group: t.Group, Prefix: string(id[:len(id)-len(id.UUID())]), Queue: t.Queue,
		Priority: t.Priority, Payload: t.Payload, Modifier: t.Modifier, Unique: t.Unique, Fairness: t.Fairness,
		Concurrency: t.Concurrency, Prefer: t.Prefer, Trace: t.Trace,
		Attempts: t.Attempts, RetryDelay: t.RetryDelay, Thrown: t.Thrown,
	})
}

// retried returns the result of an earlier Retry with the same key; the error is [ErrNoTask] if there was none.
func (q *Queue) retried(ctx context.Context, once *Once) (Enqueued, error) {
	a := &addition{q: q, once: once, note: journal.NoteAt(layout.OnceKey(once)), asked: make([]task.Task, 1), tasks: make([]adding, 1)}
	items, err := q.store.Get(ctx, a.note.Key())
	if err != nil {
		return Enqueued{}, layout.Failure("read an answer", err)
	}
	if !a.note.Stands(items[0], q.now()) {
		return Enqueued{}, ErrNoTask
	}
	if err := a.replay(ctx, items[0]); err != nil {
		return Enqueued{}, err
	}
	if a.tasks[0].task.Job == "" { // an earlier version has kept its id alone
		return Enqueued{}, ErrNoTask
	}
	return a.answer(), nil
}
