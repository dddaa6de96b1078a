package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

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
	line := tasklog.Line{Level: "warn", Message: fmt.Sprintf("a result (%s) of attempt %d came when its lease was over, and was refused", outcome, attempt)}
	op := tasklog.Note(uuid, attempt, line, q.now())
	err = q.apply(ctx, op)
	if store.AsConflict(err) != nil {
		return nil // it was noted before
	}
	return layout.Failure("note a refused result", err)
}
