package journal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// olderPrefix begins the names of generations of an older layout, each in a partition of its own. Nothing is read of them.
const olderPrefix = "all#"

// dropLayers removes the layers that no generation has named for RemoveAfter, by the store's date. Rule (removal): never
// earlier, since the manifest may be about to name them.
func (j *Journal) dropLayers(ctx context.Context) error {
	var found []*store.Item
	r := store.Range{Table: store.Journal, Partition: j.keys.generations(), From: olderPrefix, To: newestSort}
	for item, err := range store.All(ctx, j.store, r) {
		if err != nil {
			return err
		}
		found = append(found, item)
	}
	l, err := j.ladder(ctx) // after the layers: one of those found may have been named since
	if err != nil {
		return err
	}
	if err := j.dropOlder(ctx, &l); err != nil {
		return err
	}
	needed := l.layers()
	found = slices.DeleteFunc(found, func(item *store.Item) bool { return needed[item.Key.Sort] })
	if len(found) == 0 {
		return nil
	}
	date, err := j.store.Date(ctx)
	if err != nil {
		return err
	}
	for _, item := range found {
		if err := j.dropLayer(ctx, item, date); err != nil || !hasTime(ctx, time.Second) {
			return err
		}
	}
	return nil
}

// dropLayer notes that a layer is not needed, or removes it if that was noted RemoveAfter ago.
func (j *Journal) dropLayer(ctx context.Context, item *store.Item, date time.Time) error {
	if id, older := strings.CutPrefix(item.Key.Sort, olderPrefix); older {
		if err := j.store.Remove(ctx, store.Range{Table: store.Journal, Partition: j.keys.chunks(id)}); err != nil {
			return err
		}
		return j.delete(ctx, item.Key, j.token())
	}
	id := strings.TrimPrefix(item.Key.Sort, layerPrefix)
	var r registered
	if err := json.Unmarshal(item.Value, &r); err != nil {
		return err
	}
	if r.Unused == 0 {
		r.Unused = date.UnixMilli()
		return j.register(ctx, id, r, item.Version+1)
	}
	if date.Before(time.UnixMilli(r.Unused).Add(j.timing.RemoveAfter)) {
		return nil
	}
	err := j.paced(ctx, r.Chunks, j.chunk, func(n int, token string) error { return j.delete(ctx, j.chunkKey(id, n), token) })
	if err != nil {
		return err
	}
	return j.delete(ctx, item.Key, j.token())
}

func (j *Journal) delete(ctx context.Context, key store.Key, token string) error {
	return j.put(ctx, store.Write{Token: token, Ops: []store.Op{store.Delete(key, store.Always)}})
}
