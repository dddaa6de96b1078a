package notifier

import (
	"context"
	"errors"
	"time"
)

// MaxDelay is the longest delay that every notifier keeps by itself (SQS: 15 minutes). A notification for later is sent
// again later.
const MaxDelay = 15 * time.Minute

// ErrUnavailable is returned when the notifier cannot be reached. The tasks are safe in the store; the sweep sends the
// notification again.
var ErrUnavailable = errors.New("notifier: unavailable")

// ErrClosed is returned by every method but Close after Close.
var ErrClosed = errors.New("notifier: closed")

// Notice is a notification for workers: there may be a task to start. It carries no task and no order.
type Notice struct {
	// Queue is the queue to look in first.
	Queue string
	// At is when the notification is due; zero or past: now. It may come late, and up to a second early: the receiver
	// waits for its time. One that is due more than [MaxDelay] ahead comes after MaxDelay.
	At time.Time
	// Again says that the notification is repeated, because the receiver could not look. Notifiers need not preserve it.
	Again bool
	// Orders says that it is for orders instead, which may be able to go on; it names no queue. Who knows nothing of orders may look
	// for a task.
	Orders bool
}

// Notifier is a notifier that wakes workers. Notifications may be lost, doubled, reordered and late: only promptness depends
// on them. All methods may be called concurrently.
type Notifier interface {
	// Notify sends each of the notices once; there may be none. An error means that some were perhaps not sent: the context's
	// error, [ErrClosed] or [ErrUnavailable].
	Notify(ctx context.Context, notices ...Notice) error

	// Ping returns nil if the notifier can be reached.
	Ping(ctx context.Context) error

	// Close releases the notifier; notifications under way may be lost. Afterwards all methods return [ErrClosed], except
	// Close, which does nothing.
	Close() error
}

// Broadcaster is a notifier that reaches all other processes at once as well. Instances wait in the process that holds their request, and
// nobody else knows for what: so all are told.
type Broadcaster interface {
	Notifier

	// Broadcast sends notices to all other processes, and not to this one. Those that cannot hear it now never will. Errors are those of
	// Notify.
	Broadcast(ctx context.Context, notices ...Notice) error

	// Hear has f called with what other processes broadcast from now on. It is called before anything is broadcast, and at most once; f
	// must not block.
	Hear(f func(notices []Notice))
}
