package order

import (
	"context"
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

// walk lets some orders of a chain follow its state, and returns where the others begin; empty: there are none.
func (e *Engine) walk(ctx context.Context, chain, after string) (next string, err error) {
	e.chains.states.drop(chain)
	r := store.Range{Table: store.Work, Partition: listPartition(chain), Limit: walkBatch}
	page, err := e.store.Query(ctx, r.Behind(after))
	if err != nil {
		return "", journal.Failure("read the orders of a job chain", err)
	}
	for i := range page.Items {
		if err := e.followOrLater(ctx, chain+","+string(page.Items[i].Value)); err != nil {
			return "", err
		}
	}
	if !page.More || len(page.Items) == 0 {
		return "", nil
	}
	return page.Items[len(page.Items)-1].Key.Sort, nil
}

// walkOn goes on where an alarm says.
func (e *Engine) walkOn(ctx context.Context, where string, alarm *store.Item) error {
	chain, after, _ := strings.Cut(where, ",") // no chain has a comma
	next, err := e.walk(ctx, chain, after)
	if err != nil || next == "" {
		return err
	}
	return e.goOnFrom(ctx, alarm, walkPrefix+chain+","+next)
}

// goOnFrom writes how far something is into its alarm, which stays due. Race: of several processes that do the same, one writes it; so
// they do not become more.
func (e *Engine) goOnFrom(ctx context.Context, alarm *store.Item, text string) error {
	further := store.Item{Key: alarm.Key, Version: alarm.Version + 1, Value: []byte(text)}
	err := e.put(ctx, "go on with an alarm", store.Put(further, store.VersionIs(alarm.Version)))
	if store.AsConflict(err) != nil {
		return nil
	}
	return err
}

// followOrLater lets an order follow the state of its chain. If it cannot, it is tried again later. The error says that this cannot be
// noted either.
func (e *Engine) followOrLater(ctx context.Context, path string) error {
	err := e.follows(ctx, path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	e.log.Warn("an order cannot follow the state of its chain; it is tried again", "order", path, "error", err)
	return e.callAt(ctx, e.micro()+firstPause.Microseconds(), followPrefix+path)
}

// follows lets an order follow the state of its chain.
func (e *Engine) follows(ctx context.Context, path string) error {
	return e.changeIfThere(ctx, path, (*move).followChain)
}

// callAt sets an alarm that is neither an order's nor an errand.
func (e *Engine) callAt(ctx context.Context, at int64, text string) error {
	e.alarms.at(at)
	return e.put(ctx, "set an alarm", store.Put(store.Item{Key: dueKey(at, text), Version: 1, Value: []byte(text)}, store.Always))
}
