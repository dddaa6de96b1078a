package notifier

import "context"

// Receiver is the side of a notifier on which workers wait. Its methods may be called concurrently; each notification goes
// to one of the callers.
type Receiver interface {
	// Receive waits, without polling by the caller, until there is a notification, and returns from 1 to limit of them, in
	// no particular order; limit is at least 1. It returns each of them once. Their At may be zero even if they were sent
	// with a time.
	//
	// It returns the context's error, [ErrClosed] after Close, or [ErrUnavailable], after which a caller should wait a
	// little before the next call.
	Receive(ctx context.Context, limit int) ([]Notice, error)
}

// Line is a notifier with both its sides.
type Line interface {
	Notifier
	Receiver
}
