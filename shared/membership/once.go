package membership

import (
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
	note := journal.NoteAt(store.Key{Table: store.Work, Partition: partitionOnce, Sort: once.Digest()})
	write := func(ops ...store.Op) error { return t.write(ctx, ops...) }
	earlier, err := note.WriteAlone(ctx, t.store, t.now, value, write, i.put(store.Absent))
	if earlier != nil {
		return i.replay(earlier, once)
	}
	return unavailable("register an instance", err)
}

func (i *Instance) replay(found *store.Item, once *journal.Idempotency) error {
	var earlier answered
	if err := json.Unmarshal(found.Value, &earlier); err != nil {
		return fmt.Errorf("membership: %v cannot be read: %w", found.Key, err)
	}
	if err := once.Same(earlier.Fingerprint); err != nil {
		return err
	}
	i.ID, i.Term, i.Replayed = earlier.ID, earlier.Term, true
	return nil
}
