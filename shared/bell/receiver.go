package bell

import "context"

// Receiver is the side of a bell on which workers wait. Its methods may be called concurrently; a ring is heard by one of
// those who wait.
type Receiver interface {
	// Receive waits until there is a ring, without asking again and again, and answers from 1 to limit of them, in no order
	// that means anything; limit is at least 1. Rings answered are gone. Their At may be zero even if they were rung for a time.
	//
	// It ends with the context's error, with [ErrClosed] after Close, or with [ErrUnavailable], after which a caller should
	// wait a little before the next call.
	Receive(ctx context.Context, limit int) ([]Ring, error)
}

// Line is a bell with both its ends.
type Line interface {
	Bell
	Receiver
}
