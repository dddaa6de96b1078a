package bell

import (
	"context"
	"errors"
	"time"
)

// MaxDelay is the longest delay that every bell keeps by itself (SQS: 15 minutes). What is due later is rung for later.
const MaxDelay = 15 * time.Minute

// ErrUnavailable is returned by Ring when the bell cannot be reached. The work is safe in the store; the sweep rings for
// it again.
var ErrUnavailable = errors.New("bell: unavailable")

// ErrClosed is returned after Close.
var ErrClosed = errors.New("bell: closed")

// Ring asks for a worker's attention: there may be a task to start. It carries no task and no order.
type Ring struct {
	// Queue is where to look first.
	Queue string
	// At is when; zero or past: now. It is at most [MaxDelay] ahead; a ring may come late, and up to a second early.
	At time.Time
}

// Bell wakes workers. Rings may be lost, doubled, reordered and late: nothing but promptness rests on them. All methods
// may be called concurrently.
type Bell interface {
	// Ring rings once for each of rings. An error means that some were perhaps not rung.
	Ring(ctx context.Context, rings ...Ring) error

	// Ping answers nil if the bell can be rung.
	Ping(ctx context.Context) error

	// Close releases the bell; rings under way may be lost.
	Close() error
}
