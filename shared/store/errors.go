package store

import (
	"errors"
	"fmt"
)

// The errors of a Store, to be compared with errors.Is.
var (
	// ErrUnknown is returned by Write when the request may have been applied, may still be, or never was: a timeout, a
	// broken connection, a server error.
	ErrUnknown = errors.New("store: outcome unknown")

	// ErrBusy is returned when the store refuses the request for now (throttling, a transaction conflict); this request
	// has had and will have no effect.
	ErrBusy = errors.New("store: busy")

	// ErrUnavailable is returned by reads and Reserve when the store cannot be reached, and by Write when it is certain
	// that the request changed nothing.
	ErrUnavailable = errors.New("store: unavailable")

	// ErrDenied is an ErrUnavailable: the process has no permission for this request.
	ErrDenied = fmt.Errorf("%w: no permission", ErrUnavailable)

	// ErrNoAdvance is returned by Write when it has an [Advance] and the store takes none, or none any more; this request
	// has had and will have no effect.
	ErrNoAdvance = errors.New("store: a write cannot take its ticket itself")

	// ErrTooLate is returned by Write when its NotAfter has passed before the request was sent.
	ErrTooLate = errors.New("store: too late to send")

	// ErrClock is returned by Reserve when the caller's clock is more than an hour ahead of the store's date, or ids
	// would pass MaxID.
	ErrClock = errors.New("store: clock too far ahead")

	// ErrInvalid is returned for requests that break a limit of this package.
	ErrInvalid = errors.New("store: invalid request")

	// ErrTooLarge is returned for a Write with a value, or with values together, that are larger than the limits of this
	// package. It is an [ErrInvalid] too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)

	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store: closed")

	// ErrDamaged is returned by a backend's Open when the data cannot be read or belongs to something else.
	ErrDamaged = errors.New("store: damaged or foreign data")

	// ErrNoRoom is returned by a backend's Open when the disk has too little space to open the data. Open can be tried again
	// when there is more.
	ErrNoRoom = errors.New("store: too little room on the disk")

	// ErrLocked is returned by a backend's Open when another process has the data open.
	ErrLocked = errors.New("store: in use by another process")
)

// Conflict is the error of a Write whose conditions did not hold.
type Conflict struct {
	// Failed lists the operations whose condition failed, in the order of Write.Ops; at least one.
	Failed []Failure
}

// Failure names one operation whose condition failed, and what was found in its place.
type Failure struct {
	Op int // index in Write.Ops, from 0

	// Found is the item that was there; nil if there was none or the store does not tell: some stores that speak DynamoDB's API
	// lack ReturnValuesOnConditionCheckFailure. So nothing follows from nil; a caller that has to know reads the item.
	// After a failed [Absent], nil can only mean that the store does not tell.
	Found *Item
}

// Error names the first operation that failed.
func (c *Conflict) Error() string {
	first := c.Failed[0]
	if first.Found == nil {
		return fmt.Sprintf("store: conflict: op %d: no item, or one that the store does not tell", first.Op)
	}
	return fmt.Sprintf("store: conflict: op %d: found version %d of %v", first.Op, first.Found.Version, first.Found.Key)
}

// At returns what the operation with that index found, and whether its condition failed at all.
func (c *Conflict) At(op int) (found *Item, failed bool) {
	for _, f := range c.Failed {
		if f.Op == op {
			return f.Found, true
		}
	}
	return nil, false
}

// AsConflict returns the Conflict in err's chain; nil if there is none.
func AsConflict(err error) *Conflict {
	var c *Conflict
	if errors.As(err, &c) {
		return c
	}
	return nil
}

// Moved is the error of a Write whose [Advance] supposes that a sequencer stands where it does not.
type Moved struct {
	// To is where the sequencer stands now; the zero value if the store does not tell. Its floor is not told.
	To Sequence
}

// Error names the position.
func (m *Moved) Error() string {
	return fmt.Sprintf("store: the sequencer stands at %d", m.To.Position)
}

// Mine reports whether a conflict shows that w has been applied before: an item that w puts was found carrying w's
// token. Backends call it before they return a Conflict.
func (w Write) Mine(c *Conflict) bool {
	for _, f := range c.Failed {
		if w.Ops[f.Op].Kind == OpPut && f.Found != nil && f.Found.Token == w.Token {
			return true
		}
	}
	return false
}
