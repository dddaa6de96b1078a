package queue

import (
	"context"
	"strings"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
)

// A ready entry that a rule or the limit of a concurrency key holds is moved to an index of that hold when a claim meets it, so that
// later claims need not read past it, and moved back when it is released. Moves change entries only, never the task.

// holding is an entry that is to be held.
type holding struct {
	layout.Place
	hold string
	rule *rule.Stored // the rule that holds it; nil: a limit
}

func ruleHold(path string) string { return "rule/" + path }

func limitHold(key string) string { return "key/" + key }

// hold moves entries to the indexes of their holds, and returns how many it has moved; lifted says that a rule has changed and
// perhaps no longer holds them.
func (q *Queue) hold(ctx context.Context, held []holding) (moved int, lifted bool, err error) {
	byHold := map[string][]holding{}
	for _, h := range held {
		byHold[h.hold] = append(byHold[h.hold], h)
	}
	for _, hold := range sortedKeys(byHold) {
		n, refused, err := q.holdTogether(ctx, byHold[hold])
		if moved, lifted = moved+n, lifted || refused; err != nil {
			return moved, lifted, err
		}
	}
	return moved, lifted, nil
}

// holdTogether moves entries that one rule or one limit holds. Race: if the rule was changed meanwhile, the condition on its version
// fails, and the entries stay where they were.
func (q *Queue) holdTogether(ctx context.Context, held []holding) (moved int, refused bool, err error) {
	first := &held[0]
	way := make([]*moving, len(held))
	for i := range held {
		e := held[i].Single()
		to := layout.PlaceAt(layout.Key(layout.HeldPartition(first.hold), e.Order()), e)
		way[i] = &moving{from: held[i].Place, to: to, cond: store.Absent}
	}
	err = writeBundles(ctx, q, way, first.also(q))
	if store.AsConflict(err) != nil {
		return 0, true, nil
	}
	if err == nil && first.rule == nil {
		err = q.freed(ctx, first.Key) // a slot may have become free before the entries were in this index
	}
	if err != nil {
		return 0, false, layout.Failure("hold entries", err)
	}
	for i := range held {
		if first.rule != nil {
			q.passSlot(ctx, &held[i].Place)
		}
	}
	for _, m := range way {
		if !m.gone {
			moved++
		}
	}
	return moved, false, nil
}

// also returns the operations that go with each write of held entries: the item of the hold, with a new version each time, see
// releaseHold, and a check that the rule is still in force.
func (h *holding) also(q *Queue) func() []store.Op {
	return func() []store.Op {
		hold := store.Item{Key: layout.Key(layout.PartitionHolds, store.Fit(h.hold)), Version: q.created(), Value: []byte(h.hold)}
		ops := []store.Op{store.Put(hold, store.Always)}
		if h.rule != nil {
			ops = append(ops, store.Check(layout.RuleKey(h.rule.Path), store.VersionIs(h.rule.Version)))
		}
		return ops
	}
}

// release moves up to max entries of a hold back to their ready indexes, in their order, and returns how many it has moved.
func (q *Queue) release(ctx context.Context, hold string, max int) (released int, err error) {
	for released < max {
		found, _, err := layout.Places(ctx, q.store, store.Range{
			Table: store.Work, Partition: layout.HeldPartition(hold), Limit: min(moves, max-released),
		})
		if err != nil || len(found) == 0 {
			return released, err
		}
		if err := q.move(ctx, found); err != nil {
			return released, err
		}
		released += len(found)
	}
	return released, nil
}

// freed releases entries that the limit of a concurrency key held, as many as there are free slots. Those of suspended queues are
// released with them and not counted: nobody starts them now, and a claim holds them again once their queue is resumed.
func (q *Queue) freed(ctx context.Context, key string) error {
	for given := 0; ; {
		found, more, err := layout.Places(ctx, q.store, store.Range{
			Table: store.Work, Partition: layout.HeldPartition(limitHold(key)), Limit: moves,
		})
		if err != nil || len(found) == 0 {
			return err
		}
		taken, err := q.slotsTaken(ctx, layout.KeyLimit(key))
		if err != nil || taken+given >= found[0].Limit {
			return err
		}
		suspended, err := q.suspended(ctx)
		if err != nil {
			return err
		}
		n := 0
		for ; n < len(found) && taken+given < found[n].Limit; n++ {
			if !suspended(found[n].Queue) {
				given++
			}
		}
		if err := q.move(ctx, found[:n]); err != nil || n < len(found) || !more {
			return err
		}
	}
}

// passSlot releases the next entry that the limit of a concurrency key holds, if p is of that key: p may have been released for a free
// slot, and is not to be started.
func (q *Queue) passSlot(ctx context.Context, p *layout.Place) {
	if p.Limit == 0 {
		return
	}
	if err := q.freed(ctx, p.Key); err != nil {
		q.log.Warn("tasks that wait for a limit are left to the sweep", "error", err)
	}
}

// releaseHolds releases the entries of all holds that no longer apply, and removes empty holds. It counts those that rules held.
func (q *Queue) releaseHolds(ctx context.Context) (released int, err error) {
	rules, err := q.rules.InForce(ctx)
	if err != nil {
		return 0, err
	}
	for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionHolds}) {
		if err != nil {
			return released, layout.Failure("read the holds", err)
		}
		n, err := q.releaseHold(ctx, item, rules)
		if err != nil {
			return released, err
		}
		released += n
	}
	return released, nil
}

// sweepRelease is how many entries of one hold a sweep releases at most.
const sweepRelease = 3000

func (q *Queue) releaseHold(ctx context.Context, item *store.Item, rules *rule.Set) (released int, err error) {
	hold := string(item.Value)
	if path, ok := strings.CutPrefix(hold, "rule/"); ok {
		if rules.Holds(path) {
			return 0, nil
		}
		released, err = q.release(ctx, hold, sweepRelease)
	} else if key, ok := strings.CutPrefix(hold, "key/"); ok {
		err = q.freed(ctx, key)
	}
	if err != nil || released == sweepRelease {
		return released, err
	}
	return released, q.forgetHold(ctx, *item)
}

// forgetHold removes the item of a hold, unless the hold has entries. Race: a process that holds another entry meanwhile writes this item
// too, but a read may come before that entry is visible, and a repeated request may write the item with its earlier version. So the item
// is changed before the read that decides: a write that came before it is wholly visible then, and one that comes after it refuses the
// removal.
func (q *Queue) forgetHold(ctx context.Context, item store.Item) error {
	empty, err := q.holdsNothing(ctx, string(item.Value))
	if err != nil || !empty {
		return err
	}
	seen := item.Version
	item.Version = q.created()
	if err := q.apply(ctx, store.Put(item, store.VersionIs(seen))); err != nil {
		return unlessQuicker(err)
	}
	empty, err = q.holdsNothing(ctx, string(item.Value))
	if err != nil || !empty {
		return err
	}
	return unlessQuicker(q.apply(ctx, store.Delete(item.Key, store.VersionIs(item.Version))))
}

// unlessQuicker returns the error of a write of [Queue.forgetHold]: none if another process was quicker.
func unlessQuicker(err error) error {
	if store.AsConflict(err) != nil {
		return nil
	}
	return layout.Failure("forget a hold", err)
}

// holdsNothing reports whether a hold has no entries.
func (q *Queue) holdsNothing(ctx context.Context, hold string) (bool, error) {
	rest, err := q.store.Query(ctx, store.Range{Table: store.Work, Partition: layout.HeldPartition(hold), Limit: 1})
	return len(rest.Items) == 0, layout.Failure("read a hold", err)
}
