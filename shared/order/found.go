package order

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// An order that cannot go on though its event was found must not keep others from their events. So that is noted where it is listed,
// with an alarm that has it tried again, and whoever follows the journal goes on.

// foundPrefix is what the value of such an alarm begins with; the order's path follows.
const foundPrefix = "found:"

// foundTries is how often the note of an event is written while the listing changes.
const foundTries = 20

// goesOn lets an order go on for which events were found, or notes that it cannot yet. The error says that neither was possible.
func (e *Engine) goesOn(ctx context.Context, at waitAt, path string, ids []event.ID) error {
	for try := 0; ; try++ {
		err := e.happened(ctx, at, path, ids)
		if err == nil || ctx.Err() != nil {
			return err
		}
		unnoted := e.noteFound(ctx, at, path, ids)
		switch {
		case unnoted == nil:
			e.log.Warn("an order cannot go on though its event has happened; it is tried again", "order", path, "error", err)
			return nil
		case try == foundTries || store.AsConflict(unnoted) == nil:
			return errors.Join(err, journal.Failure("note the event that an order has waited for", unnoted))
		}
	}
}

// noteFound notes the first of some events that an order has waited for, if it still waits there.
func (e *Engine) noteFound(ctx context.Context, at waitAt, path string, ids []event.ID) error {
	items, err := e.get(ctx, at.item(path))
	if err != nil || items[0] == nil {
		return err
	}
	var who awaited
	if err := decode(items[0], &who); err != nil {
		return err
	}
	first := slices.IndexFunc(ids, func(id event.ID) bool { return id > who.After })
	if first < 0 || who.Found > 0 {
		return nil
	}
	who.Found = ids[first]
	// The version is another than that of what is replaced, and below the positions of the writes that may replace it.
	noted := store.Item{Key: items[0].Key, Version: 1 + items[0].Version%2, Value: encode(who)}
	due := e.micro() + firstPause.Microseconds()
	alarm := store.Item{Key: dueKey(due, foundPrefix+path), Version: 1, Value: []byte(foundPrefix + path)}
	ops := []store.Op{store.Put(noted, store.VersionIs(items[0].Version)), store.Put(alarm, store.Always)}
	if err := e.store.Write(ctx, store.Write{Token: e.token(), Ops: ops}); err != nil {
		return err
	}
	e.alarms.at(due)
	return nil
}

// retryFound lets an order go on for which an event was noted. If none is, unchanged demands that what was read of it is as it was.
func (e *Engine) retryFound(ctx context.Context, path string) (unchanged []store.Op, err error) {
	o, cond, err := e.read(ctx, path)
	if err != nil && !errors.Is(err, ErrNoOrder) {
		return nil, err
	}
	unchanged = []store.Op{store.Check(orderKey(path), cond)}
	if err != nil || o.Waiting != typed.ForEvent || o.Await == nil {
		return unchanged, nil
	}
	items, err := e.get(ctx, o.Await.item(path))
	if err != nil {
		return nil, err
	}
	if items[0] == nil {
		return append(unchanged, store.Check(o.Await.item(path), store.Absent)), nil
	}
	var who awaited
	if err := decode(items[0], &who); err != nil {
		return nil, err
	}
	if who.Found == 0 {
		return append(unchanged, store.Check(items[0].Key, store.VersionIs(items[0].Version))), nil
	}
	return nil, e.happened(ctx, *o.Await, path, []event.ID{who.Found})
}

// skip logs, once, that an item is left out which cannot be read.
func (e *Engine) skip(key store.Key, err error) {
	name := key.Partition + " " + key.Sort
	if _, known := e.waits.skipped.get(name); !known {
		e.waits.skipped.put(name, true, 0)
		e.log.Error("an item of the orders that wait is left out", "key", name, "error", err)
	}
}
