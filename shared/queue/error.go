package queue

import (
	"errors"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// The errors of a Queue, besides those of packages journal and clock and of the context.
var (
	// ErrNoTask is returned if there is no task with that id.
	ErrNoTask = layout.ErrNoTask

	// ErrFinished is returned by an operation on unfinished tasks if the task is finished.
	ErrFinished = layout.ErrFinished

	// ErrStale is returned for a lease that was valid once: it ran out, was completed, or its task was removed. Nothing
	// was changed.
	ErrStale = layout.ErrStale

	// ErrNoLease is returned for a token that was never issued.
	ErrNoLease = layout.ErrNoLease

	// ErrInvalid is returned for a request that is not valid; its text names the field.
	ErrInvalid = layout.ErrInvalid

	// ErrTooLarge is returned for a request of which a part takes more bytes than may be stored; its text names the part. It is an
	// [ErrInvalid] too.
	ErrTooLarge = layout.ErrTooLarge

	// ErrUnfinished is returned by an operation on finished tasks if the task is not finished.
	ErrUnfinished = errors.New("queue: the task is not finished")

	// ErrSucceeded is returned by Retry for a task that has succeeded.
	ErrSucceeded = errors.New("queue: the task has succeeded")

	// ErrStep is returned by Retry for a step of an order; its text names the order.
	ErrStep = errors.New("queue: the task is an order's step")

	// ErrForeign is returned for a lease that another instance holds.
	ErrForeign = errors.New("queue: another instance holds the lease")
)

// isOpen reports whether an error leaves open whether a write was applied.
func isOpen(err error) bool {
	return errors.Is(err, journal.ErrUnavailable) || errors.Is(err, journal.ErrUnknownOutcome) ||
		errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrBusy)
}
