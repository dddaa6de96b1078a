package upgrade

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// ErrIncomplete is the error of [Check], and of [Mark], for a store into which a copy was begun and not completed.
var ErrIncomplete = errors.New("upgrade: a copy into this store was not completed: begin it anew with millrace copy --again")

// firstMark is the version of the item in a store into which a copy was begun for the first time, above those of all layouts.
const firstMark = 1 << 20

// Marked reports whether a copy into a store was begun and not completed.
func Marked(ctx context.Context, s store.Store) (bool, error) {
	found, err := read(ctx, s)
	return found != nil && found.Copying, err
}

// Mark notes in a store that a copy into it has begun, so that no program starts on it, those of other layouts included, and returns
// what [Complete] asks for. The store is empty, or marked already: it is then marked anew if again is true, and the copy before can no
// longer be completed.
func Mark(ctx context.Context, s store.Store, again bool) (mark int64, err error) {
	items, err := s.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("upgrade: read the layout: %w", err)
	}
	mark, cond := int64(firstMark), store.Absent
	if item := items[0]; item != nil && !again {
		return 0, ErrIncomplete
	} else if item != nil {
		mark, cond = item.Version+1, store.VersionIs(item.Version)
	}
	value, err := json.Marshal(stored{Since: Since, Copying: true})
	if err != nil {
		return 0, err
	}
	return mark, put(ctx, s, mark, value, cond)
}

// Complete notes that everything is there: the store has this program's layout, in which run slots in a row share a partition, and programs
// start on it.
func Complete(ctx context.Context, s store.Store, mark, run int64) error {
	value, err := json.Marshal(stored{Layout: Layout, Since: Since, Run: run})
	if err != nil {
		return err
	}
	return put(ctx, s, Layout, value, store.VersionIs(mark))
}

// put writes the item of the layout for a copy.
func put(ctx context.Context, s store.Store, version int64, value []byte, cond store.Condition) error {
	item := store.Item{Key: key, Version: version, Value: value}
	err := s.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(item, cond)}})
	if store.AsConflict(err) != nil {
		return fmt.Errorf("upgrade: another copy into this store was begun meanwhile: %w", err)
	}
	if err != nil {
		return fmt.Errorf("upgrade: note the state of the copy: %w", err)
	}
	return nil
}

// IsMark reports whether a key is that of the item which says which layout a store has. It is not copied.
func IsMark(k store.Key) bool { return k == key }
