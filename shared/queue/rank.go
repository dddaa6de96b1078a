package queue

import (
	"context"

	"github.com/millrace/millrace/shared/definition"
)

// A rank is a ready entry's sort key: the least is next. It ends in the task's UUID, which sorts by creation.

// byPriority ranks by priority, high first, then creation.
func byPriority(priority int64, uuid string) string {
	return hexadecimal(^(uint64(priority)^1<<63), 16) + uuid
}

// byTurn ranks by a turn, see turn.go.
func byTurn(turn int64, uuid string) string { return stamp(turn) + uuid }

// ranks returns where entries of one queue belong in its ready index.
func (q *Queue) ranks(ctx context.Context, c definition.Queue, entries []entry) ([]string, error) {
	ranks := make([]string, len(entries))
	switch c.Type {
	case definition.RoundRobin:
		turns, err := q.turns(ctx, c, entries)
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
			ranks[i] = byPriority(entries[i].Priority, entries[i].UUID)
		}
	}
	return ranks, nil
}
