package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// tidyLater returns the operation that sets the next look at the versions of a chain, after one to two times tidyPause. Its time is a
// multiple of that, so that the looks of several processes become one again.
func (e *Engine) tidyLater(chain string) store.Op {
	pause := tidyPause.Microseconds()
	at := (e.micro() + 2*pause - 1) / pause * pause
	e.alarms.at(at)
	return store.Put(store.Item{Key: dueKey(at, tidyPrefix+chain), Version: 1, Value: []byte(tidyPrefix + chain)}, store.Always)
}

// tidying is a look at the versions of a chain, which takes some orders at a time: the alarm of each step has it behind the chain's path
// and a comma.
type tidying struct {
	Began int64  // when it began
	After string // of the orders' list: up to there they were looked at
	Used  []int  // versions that these orders are on
	All   bool   // one of them cannot be read: it may be on any version
}

// tidy goes on with a look at the versions of a chain.
func (e *Engine) tidy(ctx context.Context, where string, alarm *store.Item) error {
	chain, text, _ := strings.Cut(where, ",") // no chain has a comma
	look := tidying{Began: e.micro()}
	if err := json.Unmarshal([]byte(text), &look); text != "" && err != nil {
		return fmt.Errorf("%w: an alarm: %w", errDamaged, err)
	}
	old, err := e.oldVersions(ctx, chain)
	if err != nil || len(old) == 0 {
		return err
	}
	more, err := e.findUsed(ctx, chain, &look)
	if err != nil {
		return err
	}
	if more {
		return e.goOnFrom(ctx, alarm, tidyPrefix+chain+","+string(encode(look)))
	}
	return e.tidyAll(ctx, chain, old, &look)
}

// tidyAll removes those of some versions of a chain that nobody is on, or marks them. While any are left, it sets the next look.
func (e *Engine) tidyAll(ctx context.Context, chain string, old map[int]store.Key, look *tidying) (failed error) {
	left := 0
	for number, key := range old {
		removed, err := e.tidyOne(ctx, chain, number, key, look)
		failed = errors.Join(failed, err)
		if !removed {
			left++
		}
	}
	if left == 0 || failed != nil {
		return failed
	}
	return e.put(ctx, "set an alarm", e.tidyLater(chain))
}

// tidyOne removes a version that was marked long enough before the look and that nobody is on, or sets or removes its mark.
func (e *Engine) tidyOne(ctx context.Context, chain string, number int, key store.Key, look *tidying) (removed bool, err error) {
	mark, used := goingKey(chain, number), look.All || slices.Contains(look.Used, number)
	items, err := e.get(ctx, mark)
	switch {
	case err != nil:
		return false, err
	case used && items[0] == nil:
		return false, nil
	case used:
		return false, e.put(ctx, "keep a version", store.Delete(mark, store.Always))
	}
	var since int64
	if items[0] == nil || decode(items[0], &since) != nil {
		item := store.Item{Key: mark, Version: 1, Value: encode(e.micro())}
		return false, e.put(ctx, "mark a version", store.Put(item, store.Always))
	}
	if look.Began-since < tidyPause.Microseconds() {
		return false, nil
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

// findUsed adds the versions that the next orders of a chain are on, or will be when their running steps have ended, and reports whether
// there are more orders.
func (e *Engine) findUsed(ctx context.Context, chain string, look *tidying) (more bool, err error) {
	r := store.Range{Table: store.Work, Partition: listPartition(chain), Limit: maxGet}
	page, err := e.store.Query(ctx, r.Behind(look.After))
	if err != nil || len(page.Items) == 0 {
		return false, journal.Failure("read the orders of a job chain", err)
	}
	keys := make([]store.Key, len(page.Items))
	for i := range page.Items {
		keys[i] = orderKey(chain + "," + string(page.Items[i].Value))
		look.After = page.Items[i].Key.Sort
	}
	items, err := e.get(ctx, keys...)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if item != nil {
			look.add(item)
		}
	}
	slices.Sort(look.Used)
	look.Used = slices.Compact(look.Used)
	return page.More, nil
}

// add adds the versions that an order is on.
func (t *tidying) add(item *store.Item) {
	var o Order
	if err := decode(item, &o); err != nil {
		t.All = true
		return
	}
	t.Used = append(t.Used, o.Version)
	if o.Then != nil && o.Then.Replace != nil {
		t.Used = append(t.Used, o.Then.Replace.Version)
	}
	if o.Fork != nil {
		t.Used = append(t.Used, o.Fork.Version) // its children may not be there yet
	}
}

// maxGet is how many items are read at once.
const maxGet = 100

// put writes items that belong to no order.
func (e *Engine) put(ctx context.Context, doing string, ops ...store.Op) error {
	return journal.Failure(doing, e.store.Write(ctx, store.Write{Token: e.token(), Ops: ops}))
}

// wakeOther does what an alarm is for that is neither an order's nor that of a chain's state. Unchanged is that of wake: the look at
// versions needs none, since it comes long after the write that it is for.
func (e *Engine) wakeOther(ctx context.Context, text string, alarm *store.Item) (is bool, unchanged []store.Op, err error) {
	kind, what, _ := strings.Cut(text, ":")
	switch kind + ":" {
	case tidyPrefix:
		return true, nil, e.tidy(ctx, what, alarm)
	case walkPrefix:
		unchanged, err = e.walkOn(ctx, what, alarm)
	case bulkPrefix:
		unchanged, err = e.carryOn(ctx, what, unstamp(alarm.Key.Sort))
	case followPrefix:
		unchanged, err = e.follows(ctx, what)
	default:
		return false, nil, nil
	}
	return true, unchanged, err
}
