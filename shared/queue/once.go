package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// answered is a note: the request's fingerprint and its result.
type answered struct {
	Fingerprint []byte         `json:"f"`
	Tasks       []answeredTask `json:"t"`
}

// answeredTask holds those values of a new task that the request does not give, or the id of a task that existed already.
type answeredTask struct {
	ID        task.ID    `json:"id"`
	Existing  bool       `json:"x,omitempty"`
	Created   int64      `json:"c,omitempty"` // microseconds since 1970
	NotBefore int64      `json:"n,omitempty"` // microseconds since 1970
	State     task.State `json:"s,omitempty"`
}

// result returns the value of the addition's note.
func (a *addition) result() []byte {
	r := answered{Fingerprint: a.once.Fingerprint[:]}
	for _, t := range a.answer().Tasks {
		one := answeredTask{ID: t.Task.ID, Existing: t.Existing}
		if !t.Existing {
			one.Created, one.NotBefore, one.State = t.Task.Created, t.Task.NotBefore, t.Task.State
		}
		r.Tasks = append(r.Tasks, one)
	}
	return layout.Encode(r)
}

// remember stores the result by itself, if no task is new.
func (a *addition) remember(ctx context.Context) error {
	write := func(ops ...store.Op) error { return a.q.apply(ctx, ops...) }
	earlier, err := a.note.WriteAlone(ctx, a.q.store, a.q.now, a.result(), write)
	if earlier != nil {
		return a.replay(ctx, earlier)
	}
	return layout.Failure("remember an answer", err)
}

// replay sets the result to that of the earlier request with the same key: the tasks that it made as they were then, and those that
// existed already as they are now. The error is [journal.ErrIdempotencyMismatch] if that request had another content.
func (a *addition) replay(ctx context.Context, found *store.Item) error {
	var r answered
	if err := layout.Decode(found, &r); err != nil {
		return err
	}
	if err := a.once.Same(r.Fingerprint); err != nil {
		return err
	}
	if len(r.Tasks) != len(a.tasks) {
		return journal.ErrIdempotencyMismatch
	}
	for i, earlier := range r.Tasks {
		t := a.asked[i]
		t.ID, t.Created, t.NotBefore, t.State = earlier.ID, earlier.Created, earlier.NotBefore, earlier.State
		if large := a.tasks[i].payload; large != nil {
			t.Payload = large
		}
		if earlier.Existing {
			var err error
			if t, err = a.q.there(ctx, t); err != nil {
				return fmt.Errorf("queue: replay: %w", err)
			}
		}
		a.tasks[i] = adding{task: t, existing: true, same: -1, existed: earlier.Existing}
	}
	a.replayed = true
	return nil
}

// there returns the task as it is now, or gone if it has left the history.
func (q *Queue) there(ctx context.Context, gone task.Task) (task.Task, error) {
	t, _, err := layout.LoadTask(ctx, q.store, gone.ID.UUID())
	if errors.Is(err, ErrNoTask) {
		return gone, nil
	}
	return t, err
}
