package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
)

// The errors of reading what is stored, and of what cannot be stored.
var (
	// ErrNoTask is returned if there is no task with that id.
	ErrNoTask = errors.New("queue: no such task")

	// ErrStale is returned for a lease that was valid once: it ran out, was completed, or its task was removed. Nothing
	// was changed.
	ErrStale = errors.New("queue: the lease is no longer valid")

	// ErrNoLease is returned for a token that was never issued.
	ErrNoLease = errors.New("queue: no such lease")

	// ErrFinished is returned by an operation on unfinished tasks if the task is finished.
	ErrFinished = errors.New("queue: the task is finished")

	// ErrInvalid is returned for a request that is not valid; its text names the field.
	ErrInvalid = errors.New("queue: invalid request")

	// ErrTooLarge is returned for a request of which a part takes more bytes than may be stored; its text names the part. It is an
	// [ErrInvalid] too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)

	errDamaged = errors.New("queue: an item cannot be read: damaged, or written by a newer version")
)

// Failure wraps an error of the store, so that callers need not know the store's errors; nil stays nil. What the store
// refuses is an [ErrInvalid].
func Failure(doing string, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, journal.ErrUnavailable), errors.Is(err, ErrInvalid), errors.Is(err, ErrStale), errors.Is(err, ErrNoLease), errors.Is(err, ErrNoTask),
		errors.Is(err, ErrFinished), errors.Is(err, errDamaged):
		return err
	}
	switch err = journal.Failure(doing, err); {
	case errors.Is(err, journal.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, journal.ErrInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}
