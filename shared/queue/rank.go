package queue

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// A rank is the sort key of a ready entry: the least is next. It ends in the task's UUID, which sorts by creation.

// byTurn returns a rank by turn, see package fair, then creation.
func byTurn(turn int64, uuid string) string { return layout.Stamp(turn) + uuid }

// ranks returns the ranks of entries of one queue, by its type.
func (q *Queue) ranks(ctx context.Context, c definition.Queue, entries []layout.Entry) ([]string, error) {
	ranks := make([]string, len(entries))
	switch c.Type {
	case definition.RoundRobin:
		keys := make([]string, len(entries))
		for i := range entries {
			keys[i] = entries[i].FairnessKey()
		}
		turns, err := q.turns.Take(ctx, c, keys)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			ranks[i] = byTurn(turns[i], entries[i].UUID)
		}
	case definition.Ordered:
		for i := range entries {
			ranks[i] = entries[i].UUID
		}
	default:
		for i := range entries {
			ranks[i] = layout.ByPriority(entries[i].Priority, entries[i].UUID)
		}
	}
	return ranks, nil
}

// readyKey returns the key of an entry in the ready index of its line, which is known from then on.
func (q *Queue) readyKey(ctx context.Context, c definition.Queue, e layout.Entry) (store.Key, error) {
	if err := q.known.Register(ctx, e.Line()); err != nil {
		return store.Key{}, err
	}
	ranks, err := q.ranks(ctx, c, []layout.Entry{e})
	if err != nil {
		return store.Key{}, err
	}
	return q.parts.key(c, e.Line(), ranks[0], e.UUID), nil
}
