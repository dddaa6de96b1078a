package faulty

import "time"

// Faults says what goes wrong and how often. Chances lie between 0 and 1 and are drawn for each request. The zero
// value is a perfect connection to a perfect service.
type Faults struct {
	Seed uint64 // of the random numbers; default 0

	// InTurn draws each request's faults by the order of requests, not by what they are: for runs whose callers are not
	// deterministic anyway, and that are too long to count each call's repetitions in memory.
	InTurn bool

	// There and Back are the times that a request and its response take.
	There, Back Spread
	// Timeout is how long a caller waits for a response; 0 means for ever. The request may still land afterwards.
	Timeout time.Duration
	// SignatureLife is the age at which the service refuses an arriving request, like AWS, where it is 5 to 15 minutes;
	// 0 means never.
	SignatureLife time.Duration

	LoseRequest float64 // the request never arrives; the caller waits for Timeout
	LoseAnswer  float64 // the request is applied, the caller waits for Timeout
	Busy        float64 // the service throttles a call of any method: ErrBusy
	Unavailable float64 // no connection: ErrUnavailable, nothing is sent

	// BusyAt is the number, from 1, of the one call of a process that returns ErrBusy for certain; 0 means none.
	BusyAt int

	// Twice is the chance that a request is applied twice at once: a client library's retry. Waste is the same for a
	// reservation, whose caller learns of the second.
	Twice, Waste float64
	// Echo is the chance that a Write which was applied is applied again later, after up to EchoWithin. Only a Write that
	// has a condition echoes; the port promises order to the others.
	Echo       float64
	EchoWithin time.Duration

	// Untold: a failed condition does not say what it found, as with servers that lack ReturnValuesOnConditionCheckFailure.
	// So a Write that is repeated after it was applied is a conflict.
	Untold bool

	// Lag bounds how old an eventual read's view of each item is; 0 means that it is current. Each item has a lag of its own,
	// drawn for each read, so that a later read may have an older view than an earlier one.
	Lag time.Duration
	// Apart bounds the time that a Write of several operations takes to become visible. Each item appears at a moment of
	// its own, in any order; the response follows the last. Meanwhile other Writes to the items return ErrBusy. 0 means that
	// all appear at once.
	Apart time.Duration

	// NoAdvance is the chance that a Write which would take its ticket itself finds that the process may not: it, and each one after it, returns
	// ErrNoAdvance.
	NoAdvance float64

	Freeze       float64 // the process stands still before the request is signed, for Frozen
	FreezeOnWire float64 // the process stands still between signing and sending, for Frozen
	Frozen       Spread

	// Crash is the chance that the process dies before it sends a request, and the chance that it dies when it would get the
	// response: see [Store.Crash].
	Crash float64
}

// Spread is a distribution of durations: uniform between Min and Max, or with the chance Rare (0 to 1) uniform between Max
// and RareMax.
type Spread struct {
	Min, Max time.Duration
	Rare     float64
	RareMax  time.Duration
}

// draw takes a duration from the spread.
func (s Spread) draw(d *dice) time.Duration {
	if d.happens(s.Rare) {
		return d.between(s.Max, s.RareMax)
	}
	return d.between(s.Min, s.Max)
}
