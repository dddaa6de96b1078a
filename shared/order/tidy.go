package order

import (
	"context"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// A version of a chain is removed when there is a newer one and no order is on it. That takes two looks, tidyPause apart: the first
// marks it, so that no order is moved there any more; the second finds whoever was being moved, or added by a process that had not
// heard of the newer version yet, and removes the mark again. A write takes far less than tidyPause from the reading of the
// definitions, or of the mark, to its end.

// tidyPause is how long versions are left alone after a newer one has come, and between two looks.
const tidyPause = time.Hour

// tidyPrefix is what the value of an alarm for the versions of a chain begins with; the chain's path follows.
const tidyPrefix = "versions:"

func goingPartition(chain string) string { return "versions-going/" + store.Fit(chain) }

// goingKey is where the mark of a version lies that is about to be removed.
func goingKey(chain string, n int) store.Key {
	return work(goingPartition(chain), versionKey(chain, n).Sort)
}

// tidyLater returns the operation that sets the next look at the versions of a chain.
func (e *Engine) tidyLater(chain string) store.Op {
	at := e.micro() + tidyPause.Microseconds()
	e.alarms.at(at)
	return store.Put(store.Item{Key: dueKey(at, tidyPrefix+chain), Version: 1, Value: []byte(tidyPrefix + chain)}, store.Always)
}

// tidy removes the versions of a chain that nobody is on, or marks them. While there are others than the newest, it sets the next look.
func (e *Engine) tidy(ctx context.Context, chain string) error {
	old, err := e.oldVersions(ctx, chain)
	if err != nil || len(old) == 0 {
		return err
	}
	used, err := e.versionsInUse(ctx, chain)
	if err != nil {
		return err
	}
	left := 0
	for number, key := range old {
		removed, err := e.tidyOne(ctx, chain, number, key, used[number])
		if err != nil {
			return err
		}
		if !removed {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	return e.put(ctx, "set an alarm", e.tidyLater(chain))
}

// tidyOne removes a version that was marked before and that nobody is on, or sets or removes its mark.
func (e *Engine) tidyOne(ctx context.Context, chain string, number int, key store.Key, used bool) (removed bool, err error) {
	mark := goingKey(chain, number)
	items, err := e.get(ctx, mark)
	switch {
	case err != nil:
		return false, err
	case used && items[0] == nil:
		return false, nil
	case used:
		return false, e.put(ctx, "keep a version", store.Delete(mark, store.Always))
	case items[0] == nil:
		item := store.Item{Key: mark, Version: 1, Value: encode(e.micro())}
		return false, e.put(ctx, "mark a version", store.Put(item, store.Always))
	}
	var since int64
	if err := decode(items[0], &since); err != nil || e.micro()-since < tidyPause.Microseconds() {
		return false, err
	}
	return true, e.put(ctx, "remove a version", store.Delete(key, store.Always), store.Delete(mark, store.Always))
}

// oldVersions returns the keys of all versions of a chain but the newest, by their numbers.
func (e *Engine) oldVersions(ctx context.Context, chain string) (map[int]store.Key, error) {
	old := map[int]store.Key{}
	last := 0
	for item, err := range store.All(ctx, e.store, store.Range{Table: store.Work, Partition: versionPartition(chain)}) {
		if err != nil {
			return nil, journal.Failure("read the versions of a job chain", err)
		}
		if last, err = numberOf(item); err != nil {
			return nil, err
		}
		old[last] = item.Key
	}
	delete(old, last)
	return old, nil
}

// versionsInUse returns the versions that orders of a chain are on, or will be when their running steps have ended.
func (e *Engine) versionsInUse(ctx context.Context, chain string) (map[int]bool, error) {
	used := map[int]bool{}
	var keys []store.Key
	look := func() error {
		items, err := e.get(ctx, keys...)
		if err != nil {
			return err
		}
		for _, item := range items {
			var o Order
			if item == nil {
				continue
			}
			if err := decode(item, &o); err != nil {
				return err
			}
			used[o.Version] = true
			if o.Then != nil && o.Then.Replace != nil {
				used[o.Then.Replace.Version] = true
			}
			if o.Fork != nil {
				used[o.Fork.Version] = true // its children may not be there yet
			}
		}
		keys = keys[:0]
		return nil
	}
	for item, err := range store.All(ctx, e.store, store.Range{Table: store.Work, Partition: listPartition(chain)}) {
		if err != nil {
			return nil, journal.Failure("read the orders of a job chain", err)
		}
		if keys = append(keys, orderKey(chain+","+string(item.Value))); len(keys) == maxGet {
			if err := look(); err != nil {
				return nil, err
			}
		}
	}
	if len(keys) == 0 {
		return used, nil
	}
	return used, look()
}

// maxGet is how many items are read at once.
const maxGet = 100

// put writes items that belong to no order.
func (e *Engine) put(ctx context.Context, doing string, ops ...store.Op) error {
	return journal.Failure(doing, e.store.Write(ctx, store.Write{Token: e.token(), Ops: ops}))
}

// wakeOther does what an alarm is for that is neither an order's nor that of a chain's state.
func (e *Engine) wakeOther(ctx context.Context, alarm string) (is bool, err error) {
	if chain, is := strings.CutPrefix(alarm, tidyPrefix); is {
		return true, e.tidy(ctx, chain)
	}
	if id, is := strings.CutPrefix(alarm, bulkPrefix); is {
		return true, e.carryOn(ctx, id)
	}
	if path, is := strings.CutPrefix(alarm, foundPrefix); is {
		return true, e.retryFound(ctx, path)
	}
	return false, nil
}
