package order

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// JobAct is something that an operator does with jobs of topics.
type JobAct string

// The acts on jobs.
const (
	RemoveJobs JobAct = "remove" // those that are not finished are dropped, even while they run; finished ones leave the history
	StopJobs   JobAct = "stop"   // queued ones are stopped; running ones are asked to
	RetryJobs  JobAct = "retry"  // finished ones that have not succeeded are done again, as new jobs
)

// actOnJob acts on a job, and reports whether that is done. Done again, it has no further effect.
func (e *Engine) actOnJob(ctx context.Context, b *bulk, name string) (did bool, err error) {
	id := task.ID(name)
	switch {
	case b.Job == StopJobs:
		_, err = e.queue.Stop(ctx, id)
		if errors.Is(err, queue.ErrFinished) {
			return e.endedAs(ctx, b, id, task.Stopped)
		}
	case b.Job == RetryJobs:
		once := &journal.Idempotency{Scope: "act " + b.ID, Key: name, Fingerprint: sha256.Sum256([]byte(name))}
		_, err = e.queue.Retry(ctx, once, id)
	case b.History:
		if err = e.queue.Remove(ctx, id); errors.Is(err, queue.ErrNoTask) {
			return true, nil
		}
	default:
		err = e.queue.Drop(ctx, id)
		if errors.Is(err, queue.ErrFinished) {
			return e.endedAs(ctx, b, id, task.Dropped)
		}
	}
	for _, kind := range []error{queue.ErrNoTask, queue.ErrUnfinished, queue.ErrSucceeded, queue.ErrStep, queue.ErrInvalid} {
		if errors.Is(err, kind) {
			return false, nil
		}
	}
	return err == nil, err
}

// endedAs reports whether a finished job has ended in a state since the act began: then this act, or another one, has done that.
func (e *Engine) endedAs(ctx context.Context, b *bulk, id task.ID, state task.State) (bool, error) {
	t, err := e.queue.Get(ctx, id)
	if errors.Is(err, queue.ErrNoTask) {
		return false, nil
	}
	return err == nil && t.State == state && t.Finished >= b.At, err
}
