package journal

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// told returns the conflict c of w, completed by the items that were found where there must be none: those that the store
// did not return are read strongly. It returns nil if an item is w's own. Rule (only the slot decides): nothing is inferred
// from an item that was not returned; if it cannot be read, the outcome is unknown.
func (j *Journal) told(ctx context.Context, w store.Write, c *store.Conflict) error {
	var keys []store.Key
	var of []*store.Failure
	for i := range c.Failed {
		failed := &c.Failed[i]
		if op := w.Ops[failed.Op]; failed.Found == nil && op.Cond.IsAbsent() {
			keys, of = append(keys, op.Item.Key), append(of, failed)
		}
	}
	if len(keys) == 0 {
		return c
	}
	items, err := j.store.Get(ctx, keys...)
	if err != nil {
		return fmt.Errorf("%w: a condition failed, and what it found cannot be read: %s", store.ErrUnknown, err.Error()) // as text: err is no outcome
	}
	for i, item := range items {
		if item == nil { // it was deleted since
			return fmt.Errorf("%w: a condition failed on %v, which is not there any more", store.ErrUnknown, keys[i])
		}
		of[i].Found = item
	}
	if w.Mine(c) {
		return nil
	}
	return c
}
