package journal

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// told returns the conflict of w with the items that stood where there must be none, read strongly where the store does not
// tell them; nil if they are w's own. Rule (only the slot decides, T3): nothing is inferred from an item that is not told,
// so that where it cannot be read the outcome is unknown.
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
		return fmt.Errorf("%w: a condition failed, and what it found cannot be read: %w", store.ErrUnknown, err)
	}
	for i, item := range items {
		if item == nil { // it has gone since
			return fmt.Errorf("%w: a condition failed on %v, which is not there any more", store.ErrUnknown, keys[i])
		}
		of[i].Found = item
	}
	if w.Mine(c) {
		return nil
	}
	return c
}
