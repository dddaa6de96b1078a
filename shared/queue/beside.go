package queue

import (
	"context"

	"github.com/millrace/millrace/shared/store"
)

// Beside is an item of a caller's that is written in the same write of the store as the starts or the ends of tasks that it asks for:
// so what it says of them is true whatever dies. The calls of one Beside are made one after the other.
type Beside interface {
	// Check is called after the store has refused a write that held the item. Its error, if the item is not as the caller knows
	// it, ends what was asked for, and nothing of it is written.
	Check(ctx context.Context) error

	// Started returns the operation on the item that goes with the start of these leases. It may be called several times for a write.
	Started(leases []Lease) store.Op

	// Ended returns the operation on the item that goes with the last of these ends; those before are written. It may be called several times for a write.
	Ended(ends []Ended) store.Op

	// EndedAndStarted returns the operation on the item that goes with the last of these ends and the start of these leases in one write.
	// It may be called several times for a write.
	EndedAndStarted(ends []Ended, leases []Lease) store.Op

	// Written is called when the newest of the operations has been applied.
	Written()
}

// withBeside returns operations with that on the claimer's own item, if it has one.
func (c *claim) withBeside(ops []store.Op) []store.Op {
	if c.by.Beside == nil {
		return ops
	}
	leases := make([]Lease, len(c.starts))
	for i := range c.starts {
		leases[i] = c.starts[i].leased()
	}
	return append(ops, c.by.Beside.Started(leases))
}

// checkBeside returns an error if a write was refused and the claimer's own item has changed.
func (c *claim) checkBeside(ctx context.Context, lost *store.Conflict) error {
	if lost == nil || c.by.Beside == nil {
		return nil
	}
	return c.by.Beside.Check(ctx)
}

// endOf returns when a lease ends at first that would end at a time, both in microseconds since 1970.
func (by *Claimer) endOf(at int64) int64 {
	if by.Until.IsZero() {
		return at
	}
	return min(at, by.Until.UnixMicro())
}
