package membership

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// answered is the item of an idempotency key: the instance that it registered.
type answered struct {
	Fingerprint []byte `json:"f"`
	ID          string `json:"i"`
	Term        int64  `json:"t"`
}

// admit writes a new instance, together with its idempotency key if it has one. If the key was used before, i gets ID and Term
// of the earlier instance.
func (t *Membership) admit(ctx context.Context, i *Instance, once *journal.Idempotency) error {
	if once == nil {
		return unavailable("register an instance", t.write(ctx, i.put(store.Absent)))
	}
	value, err := json.Marshal(answered{once.Fingerprint[:], i.ID, i.Term})
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	note := store.Item{
		Key:     store.Key{Table: store.Work, Partition: partitionOnce, Sort: once.Digest()},
		Version: 1, Value: value, Expires: t.now().Add(journal.OnceFor),
	}
	for cond := store.Absent; ; {
		err := t.write(ctx, i.put(store.Absent), store.Put(note, cond))
		var found *store.Item
		failed := false
		if conflict := store.AsConflict(err); conflict != nil {
			found, failed = conflict.At(1)
		}
		switch {
		case !failed:
			return unavailable("register an instance", err)
		case found == nil: // it had expired, and was removed meanwhile
			cond, note.Version = store.Absent, 1
		case found.Expires.Before(t.now()):
			cond, note.Version = store.VersionIs(found.Version), found.Version+1
		default:
			return i.replay(found, once)
		}
	}
}

func (i *Instance) replay(found *store.Item, once *journal.Idempotency) error {
	var earlier answered
	if err := json.Unmarshal(found.Value, &earlier); err != nil {
		return fmt.Errorf("membership: %v cannot be read: %w", found.Key, err)
	}
	if !bytes.Equal(earlier.Fingerprint, once.Fingerprint[:]) {
		return journal.ErrIdempotencyMismatch
	}
	i.ID, i.Term, i.Replayed = earlier.ID, earlier.Term, true
	return nil
}
