package queue

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// moves is how many entries are read and moved together at most.
const moves = 30

// moving is an entry on its way to another index.
type moving struct {
	from, to layout.Place
	fallback *layout.Place   // the fallback entry, if it is kept for an instance
	cond     store.Condition // of the item at the new key
	gone     bool            // it is no longer at the old key
	late     bool            // a newer entry of the task is at the new key
}

// move moves entries from any index to their ready indexes, and notifies claimers.
func (q *Queue) move(ctx context.Context, found []layout.Place) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	byQueue := map[string][]layout.Place{}
	var names []string
	for _, p := range found {
		if byQueue[p.Queue] == nil {
			names = append(names, p.Queue)
		}
		byQueue[p.Queue] = append(byQueue[p.Queue], p)
	}
	for _, name := range names {
		if err := q.moveIn(ctx, set, name, byQueue[name]); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) moveIn(ctx context.Context, set *definition.Set, name string, found []layout.Place) error {
	entries := make([]layout.Entry, len(found))
	for i := range found {
		if entries[i] = found[i].Entry; found[i].Rank != "" {
			entries[i] = found[i].Single()
		}
		entries[i].Settle(set)
		if err := q.known.Register(ctx, entries[i].Line()); err != nil {
			return err
		}
	}
	c := set.QueueOf(name)
	ranks, err := q.ranksOf(ctx, c, found, entries)
	if err != nil {
		return err
	}
	way, o := make([]*moving, len(found)), q.offers(set)
	for i := range found {
		e := &entries[i]
		to := layout.PlaceAt(q.parts.key(c, e.Line(), ranks[i], e.UUID), *e)
		way[i] = &moving{from: found[i], to: to, cond: store.Absent}
		kept, fallback, err := o.offer(ctx, e, ranks[i])
		if err != nil {
			return err
		}
		if kept != nil {
			way[i].to, way[i].fallback = *kept, fallback
		}
	}
	return q.carry(ctx, way)
}

// ranksOf returns the ranks of entries in the ready index: a fallback entry has one already, the others get new ones.
func (q *Queue) ranksOf(ctx context.Context, c definition.Queue, found []layout.Place, entries []layout.Entry) ([]string, error) {
	ranks := make([]string, len(found))
	var fresh []layout.Entry
	for i := range found {
		if ranks[i] = found[i].Rank; ranks[i] == "" {
			fresh = append(fresh, entries[i])
		}
	}
	given, err := q.ranks(ctx, c, fresh)
	if err != nil {
		return nil, err
	}
	for i := range ranks {
		if ranks[i] == "" {
			ranks[i], given = given[0], given[1:]
		}
	}
	return ranks, nil
}

// carry writes the moves, and notifies claimers. Race: a task that was started from its old entry meanwhile, and waits again, has
// a newer entry at the new key; that one stays.
func (q *Queue) carry(ctx context.Context, way []*moving) error {
	if err := writeBundles(ctx, q, way, nothingElse); err != nil {
		return layout.Failure("move entries", err)
	}
	var moved []*layout.Place
	for _, m := range way {
		if !m.gone && !m.late {
			moved = append(moved, &m.to, m.fallback)
		}
	}
	q.announce(ctx, moved)
	return nil
}

func (m *moving) ops() []store.Op {
	if m.gone {
		return nil
	}
	ops := append(make([]store.Op, 0, 4), store.Delete(m.from.At, store.VersionIs(m.from.Version)))
	ops = append(ops, m.from.OtherEntry()...)
	if m.late {
		return ops
	}
	ops = append(ops, m.to.Put(m.cond))
	if m.fallback != nil {
		ops = append(ops, m.fallback.Put(store.Always))
	}
	return ops
}

func (m *moving) meet(kind store.OpKind, found *store.Item) {
	switch {
	case kind == store.OpDelete:
		m.gone = true
	case found == nil:
		m.cond = store.Absent
	case found.Version >= m.to.Version:
		m.late = true
	default:
		m.cond = store.VersionIs(found.Version)
	}
}
