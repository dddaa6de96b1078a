package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Running returns how many tasks each instance runs, by its [Claimer.Instance]; instances that run none are absent. It reads every
// lease.
func (q *Queue) Running(ctx context.Context) (map[string]int, error) {
	running := map[string]int{}
	for item, err := range layout.AllLeases(ctx, q.store) {
		if err != nil {
			return nil, err
		}
		var l layout.Lease
		if err := layout.Decode(item, &l); err != nil {
			return nil, err
		}
		running[l.Instance]++
	}
	return running, nil
}

// leaseLost begins the message of a task whose lease ran out.
const leaseLost = "the lease ran out"

// Refused writes in a task's log that a result came after its lease had ended: the worker was cut off, and may have done its work
// even so. It changes nothing else. It writes one line, once, at the end of the attempt's lines; none for a repetition of a result
// that was accepted before, unless the next attempt has begun meanwhile.
func (q *Queue) Refused(ctx context.Context, token string, outcome Outcome) error {
	uuid, attempt, err := layout.ParseToken(token)
	if err != nil {
		return err
	}
	t, _, err := layout.LoadTask(ctx, q.store, uuid)
	if errors.Is(err, ErrNoTask) {
		return nil // its history is gone
	}
	if err != nil {
		return err
	}
	if attempt > t.Attempt || t.State == task.Running && t.Lease == token ||
		attempt == t.Attempt && !strings.HasPrefix(t.Message, leaseLost) {
		return nil
	}
	line := q.logLine(Line{Level: "warn", Message: fmt.Sprintf("a result (%s) of attempt %d came when its lease was over, and was refused", outcome, attempt)})
	sort := fmt.Sprintf("%08x-%s-fff", attempt, "ffffffffffff") // after all that the attempt has logged
	op := store.Put(store.Item{Key: layout.Key(layout.LogPartition(uuid), sort), Version: 1, Value: layout.Encode([]logged{line})}, store.Absent)
	err = q.apply(ctx, op)
	if store.AsConflict(err) != nil {
		return nil // it was noted before
	}
	return layout.Failure("note a refused result", err)
}

// Dialect returns the dialect of the task of a lease. If the task is gone, it was of a topic, and its dialect is [task.Job].
func (q *Queue) Dialect(ctx context.Context, token string) (task.Dialect, error) {
	uuid, _, err := layout.ParseToken(token)
	if err != nil {
		return "", err
	}
	t, _, err := layout.LoadTask(ctx, q.store, uuid)
	if errors.Is(err, ErrNoTask) {
		return task.Job, nil
	}
	return t.Dialect, err
}
