package bell

import (
	"context"
	"errors"
	"time"
)

// MaxDelay is the longest delay that every bell keeps by itself (SQS: 15 minutes). What is due later is rung for later.
const MaxDelay = 15 * time.Minute

// ErrUnavailable is returned when the bell cannot be reached. The work is safe in the store; the sweep rings for
// it again.
var ErrUnavailable = errors.New("bell: unavailable")

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("bell: closed")

// Ring asks for a worker's attention: there may be a task to start. It carries no task and no order.
type Ring struct {
	// Queue is where to look first.
	Queue string
	// At is when; zero or past: now. A ring may come late, and up to a second early: whoever hears it waits for its time. One
	// for more than [MaxDelay] ahead comes after MaxDelay.
	At time.Time
	// Again: it is rung afresh, since whoever heard it could not look. Bells need not keep it.
	Again bool
}

// Bell wakes workers. Rings may be lost, doubled, reordered and late: nothing but promptness rests on them. All methods
// may be called concurrently.
type Bell interface {
	// Ring rings once for each of rings, which may be none. An error means that some were perhaps not rung: the context's
	// error, [ErrClosed] or [ErrUnavailable].
	Ring(ctx context.Context, rings ...Ring) error

	// Ping answers nil if the bell can be rung.
	Ping(ctx context.Context) error

	// Close releases the bell; rings under way may be lost. Afterwards all methods answer [ErrClosed], but for Close itself,
	// which does nothing more.
	Close() error
}
