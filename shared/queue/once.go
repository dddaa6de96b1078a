package queue

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

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

// answeredTask holds those values of a task that the request does not give.
type answeredTask struct {
	ID        task.ID    `json:"id"`
	Existing  bool       `json:"x,omitempty"`
	Created   int64      `json:"c,omitempty"` // microseconds since 1970
	NotBefore int64      `json:"n,omitempty"` // microseconds since 1970
	State     task.State `json:"s,omitempty"`
	// Whole is the task as it was, in the form of its item, if the request says nothing of it: one that existed, or one that does
	// another again. It is empty if it would be too large, and in what earlier versions wrote.
	Whole []byte `json:"w,omitempty"`
}

// maxWhole is how many bytes a note has for whole tasks, so that it fits in an item.
const maxWhole = 360 << 10

// result returns the value of the addition's note.
func (a *addition) result() []byte {
	r, room := answered{Fingerprint: a.once.Fingerprint[:]}, maxWhole
	for i, t := range a.answer().Tasks {
		one := answeredTask{ID: t.Task.ID, Existing: t.Existing, Created: t.Task.Created, NotBefore: t.Task.NotBefore, State: t.Task.State}
		if a.tasks[i].existing || a.tasks[i].again {
			one.Whole = wholeIn(room, t.Task)
			room -= base64.StdEncoding.EncodedLen(len(one.Whole))
		}
		r.Tasks = append(r.Tasks, one)
	}
	return layout.Encode(r)
}

// wholeIn returns a task as it is kept in a note that has room for so many bytes: without payload and output if these are too large.
func wholeIn(room int, t task.Task) []byte {
	for range 2 {
		if whole := layout.Encode(&t); base64.StdEncoding.EncodedLen(len(whole)) <= room {
			return whole
		}
		t.Apart, t.Payload, t.Output = max(t.Apart, len(t.Payload)), nil, nil
	}
	return nil
}

// mayKeepOld reports whether the note may keep tasks that existed, in a write that makes others.
func (a *addition) mayKeepOld() bool {
	mayExist := func(t adding) bool { return t.fixed || t.claims() }
	return a.once != nil && len(a.tasks) > 1 && slices.ContainsFunc(a.tasks, mayExist)
}

// fetch reads the payloads of tasks that exist already, as far as the note has room for them: they are gone when the tasks are.
func (a *addition) fetch(ctx context.Context) error {
	var keys []store.Key
	var of []*adding
	room := maxWhole
	for i := range a.tasks {
		t := &a.tasks[i]
		if t.existing && t.task.Apart > 0 && t.task.Payload == nil {
			if room -= t.task.Apart; room >= 0 {
				keys, of = append(keys, layout.PayloadKey(t.task.ID.UUID())), append(of, t)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	items, err := a.q.store.Get(ctx, keys...)
	if err != nil {
		return layout.Failure("read payloads", err)
	}
	for i, item := range items {
		if item != nil { // otherwise its task has just gone
			of[i].task.Payload = item.Value
		}
	}
	return nil
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

// replay sets the result to that of the earlier request with the same key: the tasks as they were then. The error is
// [journal.ErrIdempotencyMismatch] if that request had another content.
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
	for i := range r.Tasks {
		t, err := a.earlier(ctx, i, &r.Tasks[i])
		if err != nil {
			return fmt.Errorf("queue: replay: %w", err)
		}
		a.tasks[i] = adding{task: t, existing: true, same: -1, existed: r.Tasks[i].Existing}
	}
	a.replayed = true
	return nil
}

// earlier returns a task of the request as it was in the earlier result.
func (a *addition) earlier(ctx context.Context, i int, then *answeredTask) (task.Task, error) {
	t := a.asked[i]
	t.ID, t.Created, t.NotBefore, t.State = then.ID, then.Created, then.NotBefore, then.State
	if large := a.tasks[i].payload; large != nil {
		t.Payload = large
	}
	switch {
	case len(then.Whole) > 0:
		err := layout.Decode(&store.Item{Key: a.note.Key(), Value: then.Whole}, &t)
		return t, err
	case !then.Existing:
		return t, nil
	case a.tasks[i].same >= 0:
		return a.tasks[a.tasks[i].same].task, nil
	default:
		return a.q.there(ctx, t)
	}
}

// there returns the task as it is now, or gone if it has left the history.
func (q *Queue) there(ctx context.Context, gone task.Task) (task.Task, error) {
	t, _, err := layout.LoadTask(ctx, q.store, gone.ID.UUID())
	if errors.Is(err, ErrNoTask) {
		return gone, nil
	}
	return t, err
}
