package order

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// once is the idempotency key of a request; nil: it has none.
type once struct {
	*journal.Idempotency
	e    *Engine
	note *journal.Note
}

// errReplayed ends a request whose idempotency key an earlier one had.
var errReplayed = errors.New("order: replayed")

func onceKey(key *journal.Idempotency) store.Key { return work("order-once/"+key.Digest(), only) }

func (e *Engine) onceOf(key *journal.Idempotency) *once {
	if key == nil {
		return nil
	}
	return &once{key, e, journal.NoteAt(onceKey(key))}
}

// names returns what the note of the key adds to the names of a write.
func (o *once) names() []string {
	if o == nil {
		return nil
	}
	return []string{o.note.Key().Partition}
}

// replay returns errReplayed if an earlier request had the key, and sets result to that of it.
func (o *once) replay(ctx context.Context, result any) error {
	if o == nil {
		return nil
	}
	items, err := o.e.get(ctx, o.note.Key())
	if err != nil || items[0] == nil || !o.note.Stands(items[0], o.e.now()) {
		return err
	}
	value := items[0].Value
	if len(value) < sha256.Size {
		return errDamaged
	}
	if err := o.Same(value[:sha256.Size]); err != nil {
		return err
	}
	if err := json.Unmarshal(value[sha256.Size:], result); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return errReplayed
}

// ops returns what keeps the result of the request under its key.
func (o *once) ops(result any) []store.Op {
	if o == nil {
		return nil
	}
	return []store.Op{o.note.Put(append(o.Fingerprint[:len(o.Fingerprint):len(o.Fingerprint)], encode(result)...), o.e.now())}
}
