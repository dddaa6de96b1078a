package queue

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// The errors of a Queue, besides those of packages journal and clock and of the context.
var (
	// ErrNoTask is returned if there is no task with that id.
	ErrNoTask = errors.New("queue: no such task")

	// ErrFinished is returned by an operation on unfinished tasks if the task is finished.
	ErrFinished = errors.New("queue: the task is finished")

	// ErrUnfinished is returned by an operation on finished tasks if the task is not finished.
	ErrUnfinished = errors.New("queue: the task is not finished")

	// ErrSucceeded is returned by Retry for a task that has succeeded.
	ErrSucceeded = errors.New("queue: the task has succeeded")

	// ErrStale is returned for a lease that was valid once: it ran out, was completed, or its task was removed. Nothing
	// was changed.
	ErrStale = errors.New("queue: the lease is no longer valid")

	// ErrNoLease is returned for a token that was never issued.
	ErrNoLease = errors.New("queue: no such lease")

	// ErrForeign is returned for a lease that another instance holds.
	ErrForeign = errors.New("queue: another instance holds the lease")

	// ErrNotFoundYet is returned for a page of a list if nothing was found in as many tasks as one call looks at. The list goes on
	// at the page's cursor.
	ErrNotFoundYet = errors.New("queue: nothing was found yet")

	// ErrInvalid is returned for a request that is not valid; its text names the field.
	ErrInvalid = errors.New("queue: invalid request")

	// ErrTooLarge is returned for a request of which a part takes more bytes than may be stored; its text names the part. It is an
	// [ErrInvalid] too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
)

// isOpen reports whether an error leaves open whether a write was applied.
func isOpen(err error) bool {
	return errors.Is(err, journal.ErrUnavailable) || errors.Is(err, journal.ErrUnknownOutcome) ||
		errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrBusy)
}
