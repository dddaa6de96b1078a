package queue

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Stop cancels a task that is queued at once, and asks a running one to stop; running says which of the two it was. The
// error is [ErrFinished] for a finished task.
func (q *Queue) Stop(ctx context.Context, id task.ID) (running bool, err error) {
	for try := 0; ; try++ {
		err := q.finish(ctx, id, task.Stop, "")
		if !errors.Is(err, errRunning) {
			return false, err
		}
		err = q.askToStop(ctx, id)
		if store.AsConflict(err) == nil && !again(err) && !errors.Is(err, errMoved) || try == tries {
			return true, unavailable("ask a task to stop", err)
		}
		q.pause(ctx)
	}
}

var (
	errRunning = errors.New("queue: the task is running")
	errMoved   = errors.New("queue: the task has changed meanwhile")
)

// finish ends a task that is queued. Its entry is left to whoever meets it.
func (q *Queue) finish(ctx context.Context, id task.ID, step task.Step, message string) error {
	_, err := q.journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		t, version, err := q.load(ctx, id.UUID())
		switch {
		case err != nil:
			return journal.Change{}, err
		case t.State.Final():
			return journal.Change{}, ErrFinished
		case t.State == task.Running:
			return journal.Change{}, errRunning
		}
		t.State, _ = t.State.After(step) // every queued state has it
		t.Finished, t.Message = q.micro(), message
		return journal.Change{Events: finished(&t, step), Ops: func(journal.Receipt) []store.Op {
			return conclude(&t, false, store.VersionIs(version))
		}}, nil
	})
	return err
}

// finished are the events of a task that ends without having been started. A tick that is not run is told of as such.
func finished(t *task.Task, step task.Step) []event.Event {
	events := []event.Event{closed(t)}
	if t.Schedule != "" && step == task.Drop {
		fields := appendTime([]byte(`"at":`), t.ID.Time())
		fields = appendText(append(fields, `,"reason":`...), t.Message)
		events = append(events, event.Event{Type: "ScheduleSkipped", Key: event.Key{Path: "Schedule:/" + t.Schedule}, Fields: fields})
	}
	return events
}

// askToStop marks the lease of a running task; the next heartbeat tells its worker.
func (q *Queue) askToStop(ctx context.Context, id task.ID) error {
	t, _, err := q.load(ctx, id.UUID())
	if err != nil {
		return err
	}
	if t.State != task.Running {
		return errMoved
	}
	h, err := q.leased(ctx, t.Lease)
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
		return errMoved
	}
	if err != nil || h.Stop {
		return err
	}
	h.Stop = true
	item := store.Item{Key: leaseKey(t.Lease), Version: h.version + 1, Value: encode(&h.lease)}
	err = q.store.Write(ctx, store.Write{Token: q.token(), Ops: []store.Op{store.Put(item, store.VersionIs(h.version))}})
	if err == nil {
		q.leases.drop(t.Lease)
		q.stopped.tell(t.Lease)
	}
	return err
}

// Retry enqueues a finished task that did not succeed once more, as one new task with all its attempts; a unique key that
// another holds is answered with that one. Once is as for Enqueue. The error is [ErrUnfinished] or [ErrSucceeded] where that
// is not possible.
func (q *Queue) Retry(ctx context.Context, once *Once, id task.ID) (Enqueued, error) {
	t, err := q.Get(ctx, id)
	switch {
	case err != nil:
		return Enqueued{}, err
	case !t.State.Final():
		return Enqueued{}, ErrUnfinished
	case t.State == task.Succeeded:
		return Enqueued{}, ErrSucceeded
	}
	return q.Enqueue(ctx, once, New{
		Dialect: t.Dialect, Job: t.Job, Group: t.Group, Prefix: string(id[:len(id)-len(id.UUID())]), Queue: t.Queue,
		Priority: t.Priority, Payload: t.Payload, Modifier: t.Modifier, Unique: t.Unique, Fairness: t.Fairness,
		Concurrency: t.Concurrency, Prefer: t.Prefer, Trace: t.Trace,
		Attempts: t.Attempts, RetryDelay: t.RetryDelay, Thrown: t.Thrown,
	})
}
