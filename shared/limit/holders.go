package limit

import (
	"context"

	"github.com/millrace/millrace/shared/store"
)

// Holders returns who has taken the slots of a limit, in the order of the slots. It costs a read. Errors are the store's.
func (l *Limits) Holders(ctx context.Context, limit string) ([]string, error) {
	var holders []string
	for item, err := range store.All(ctx, l.store, store.Range{Table: store.Work, Partition: partition(limit)}) {
		if err != nil {
			return nil, err
		}
		slot, err := stored(limit, item)
		if err != nil {
			return nil, err
		}
		holders = append(holders, slot.Holder)
	}
	return holders, nil
}
