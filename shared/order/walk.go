package order

import (
	"context"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// All orders of a chain follow its state, some at a time. How far that is stands in an alarm, so that any process goes on with it.

const (
	// walkPrefix is what the value of such an alarm begins with. The chain's path follows, a comma, and where it goes on.
	walkPrefix = "orders:"
	// followPrefix is what the value of an alarm for an order begins with that could not follow the state of its chain. The order's
	// path follows.
	followPrefix = "follow:"

	walkBatch = 100 // orders of one look
)

// walk lets some orders of a chain follow its state, and returns where the others begin; empty: there are none. Unchanged demands that the
// state is as it was read.
func (e *Engine) walk(ctx context.Context, chain, after string) (next string, unchanged []store.Op, err error) {
	s, err := e.chainState(ctx, chain, true)
	if err != nil {
		return "", nil, err
	}
	unchanged = []store.Op{store.Check(chainKey(chain), s.condition())}
	r := store.Range{Table: store.Work, Partition: listPartition(chain), Limit: walkBatch}
	page, err := e.store.Query(ctx, r.Behind(after))
	if err != nil {
		return "", nil, journal.Failure("read the orders of a job chain", err)
	}
	for i := range page.Items {
		if err := e.followOrLater(ctx, chain+","+string(page.Items[i].Value)); err != nil {
			return "", nil, err
		}
	}
	if !page.More || len(page.Items) == 0 {
		return "", unchanged, nil
	}
	return page.Items[len(page.Items)-1].Key.Sort, unchanged, nil
}

// walkOn goes on where an alarm says.
func (e *Engine) walkOn(ctx context.Context, where string, alarm *store.Item) (unchanged []store.Op, err error) {
	chain, after, _ := strings.Cut(where, ",") // no chain has a comma
	next, unchanged, err := e.walk(ctx, chain, after)
	if err != nil || next == "" {
		return unchanged, err
	}
	return unchanged, e.goOnFrom(ctx, alarm, walkPrefix+chain+","+next, unchanged...)
}

// goOnFrom writes how far something is into its alarm, which stays due. Race: of several processes that do the same, one writes it; so
// they do not become more. It is written only if what unchanged demands is so.
func (e *Engine) goOnFrom(ctx context.Context, alarm *store.Item, text string, unchanged ...store.Op) error {
	further := store.Item{Key: alarm.Key, Version: alarm.Version + 1, Value: []byte(text)}
	ops := append(slices.Clip(unchanged), store.Put(further, store.VersionIs(alarm.Version)))
	err := e.put(ctx, "go on with an alarm", ops...)
	if store.AsConflict(err) != nil {
		return nil
	}
	return err
}

// followOrLater lets an order follow the state of its chain. If it cannot, it is tried again later. The error says that this cannot be
// noted either.
func (e *Engine) followOrLater(ctx context.Context, path string) error {
	_, err := e.follows(ctx, path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	e.log.Warn("an order cannot follow the state of its chain; it is tried again", "order", path, "error", err)
	return e.callAt(ctx, e.micro()+firstPause.Microseconds(), followPrefix+path)
}

// follows lets an order follow the state of its chain. If it does already, unchanged demands that it is as it was read.
func (e *Engine) follows(ctx context.Context, path string) (unchanged []store.Op, err error) {
	return e.changeIfDue(ctx, path, (*move).followChain)
}

// callAt sets an alarm that is neither an order's nor an errand.
func (e *Engine) callAt(ctx context.Context, at int64, text string) error {
	e.alarms.at(at)
	return e.put(ctx, "set an alarm", store.Put(store.Item{Key: dueKey(at, text), Version: 1, Value: []byte(text)}, store.Always))
}
