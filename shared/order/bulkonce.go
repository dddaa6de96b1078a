package order

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// beginOnce begins an act on what is selected, once for all calls with the same idempotency key: the key is remembered by the write by
// which the act begins. If nothing is selected, the error is [ErrNothing], and no key is remembered. Once may be nil.
func (e *Engine) beginOnce(ctx context.Context, once *journal.Idempotency, b *bulk, selected func() ([]string, error)) (Bulk, error) {
	if once == nil {
		once = new(journal.Idempotency)
	}
	note := journal.NoteAt(onceKey(once))
	if once.Key != "" {
		items, err := e.get(ctx, note.Key())
		if err != nil {
			return Bulk{}, err
		}
		if items[0] != nil && note.Stands(items[0], e.now()) {
			return replayed(items[0], once)
		}
	}
	all, err := selected()
	if err != nil {
		return Bulk{}, err
	}
	if len(all) == 0 && b.Order == nil {
		return Bulk{}, fmt.Errorf("%w: no job is as the filter says", ErrNothing)
	}
	if len(all) == 0 {
		return Bulk{}, fmt.Errorf("%w: no order is as the filter says", ErrNothing)
	}
	var earlier *store.Item
	err = e.start(ctx, b, all, func(ops ...store.Op) (err error) {
		write := func(ops ...store.Op) error { return e.put(ctx, "begin an act", ops...) }
		if once.Key == "" {
			return write(ops...)
		}
		value := append(once.Fingerprint[:len(once.Fingerprint):len(once.Fingerprint)], encode(b.Bulk)...)
		earlier, err = note.WriteAlone(ctx, e.store, e.now, value, write, ops...)
		return err
	})
	switch {
	case err != nil:
		return Bulk{}, err
	case earlier != nil:
		return replayed(earlier, once)
	}
	return b.Bulk, nil
}

// replayed returns the act that an earlier request with the key has begun.
func replayed(note *store.Item, once *journal.Idempotency) (b Bulk, err error) {
	if len(note.Value) < sha256.Size {
		return b, errDamaged
	}
	if err := once.Same(note.Value[:sha256.Size]); err != nil {
		return b, err
	}
	if err := json.Unmarshal(note.Value[sha256.Size:], &b); err != nil {
		return b, fmt.Errorf("%w: %w", errDamaged, err)
	}
	b.Replayed = true
	return b, nil
}
