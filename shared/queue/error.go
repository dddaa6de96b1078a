package queue

import (
	"errors"
	"fmt"
)

// What the methods of a Queue answer when they do not answer nil, besides the errors of package journal.
var (
	// ErrNoTask is returned where there is no task with that id.
	ErrNoTask = errors.New("queue: no such task")

	// ErrFinished is returned where an act is for unfinished tasks and the task is finished.
	ErrFinished = errors.New("queue: the task is finished")

	// ErrUnfinished is returned where an act is for finished tasks and the task is not.
	ErrUnfinished = errors.New("queue: the task is not finished")

	// ErrSucceeded is returned by Retry for a task that has succeeded.
	ErrSucceeded = errors.New("queue: the task has succeeded")

	// ErrStale is returned for a lease that was valid once: it ran out, was completed, or its task was removed. Nothing
	// was changed.
	ErrStale = errors.New("queue: the lease is no longer valid")

	// ErrNoLease is returned for a token that was never issued.
	ErrNoLease = errors.New("queue: no such lease")

	// ErrInvalid is returned for a request that breaks a rule of this package; its text names the field.
	ErrInvalid = errors.New("queue: invalid request")

	// ErrTooLarge is returned for a request of which a part takes more bytes than are stored of it; its text names the field, the
	// size and the limit. It is an [ErrInvalid] too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
)
