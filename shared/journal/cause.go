package journal

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// A slot may name a cause by the position of the slot that holds it, which is what writers know without a read. Who reads with
// [Request.Causes] gets its id.

// shown returns an event as a reader gets it: with its origin only if causes are asked for.
func shown(e *event.Event, causes bool) event.Event {
	if causes {
		return e.Apart()
	}
	plain := *e
	plain.Cause, plain.By = 0, ""
	return plain
}

// nameWithin gives events the ids of causes that lie in a contiguous run of slots.
func nameWithin(run []slot, events []event.Event) {
	if len(run) == 0 {
		return
	}
	first := run[0].position
	for i := range events {
		if at := events[i].Cause.Position(); at >= first && at < first+int64(len(run)) {
			events[i].Cause = event.CausedBy(event.LastOf(run[at-first].events, events[i].Key))
		}
	}
}

// nameCauses gives events the ids of all causes. It reads the slots that are not in memory. A cause whose slot was removed is
// none.
func (j *Journal) nameCauses(ctx context.Context, events []event.Event) error {
	var elsewhere map[int64][]*event.Event
	for i := range events {
		at := events[i].Cause.Position()
		if at == 0 {
			continue
		}
		if run := j.tail.run(at, at); run != nil {
			events[i].Cause = event.CausedBy(event.LastOf(run[0].events, events[i].Key))
			continue
		}
		if elsewhere == nil {
			elsewhere = map[int64][]*event.Event{}
		}
		elsewhere[at] = append(elsewhere[at], &events[i])
	}
	const together = 100
	for positions := range slices.Chunk(slices.Sorted(maps.Keys(elsewhere)), together) {
		if err := j.nameFrom(ctx, positions, elsewhere); err != nil {
			return err
		}
	}
	return nil
}

// nameFrom reads slots and gives the events of which each holds the cause its id.
func (j *Journal) nameFrom(ctx context.Context, positions []int64, events map[int64][]*event.Event) error {
	keys := make([]store.Key, len(positions))
	for i, position := range positions {
		keys[i] = j.keys.slot(position)
	}
	items, err := j.store.Get(ctx, keys...)
	if err != nil {
		return j.unavailable("read causes", err)
	}
	for i, item := range items {
		s, err := j.left(ctx, positions[i], item)
		if err != nil {
			return err
		}
		for _, e := range events[positions[i]] {
			e.Cause = event.CausedBy(event.LastOf(s.events, e.Key))
		}
	}
	return nil
}

// left returns a slot of which the first item was read, nil if there is none. It is empty if the slot was removed, or a part of it,
// since nothing is removed before the floor has passed it.
func (j *Journal) left(ctx context.Context, position int64, first *store.Item) (slot, error) {
	if first == nil {
		return slot{}, nil
	}
	value, err := j.whole(ctx, position, first, nil)
	if err != nil || value == nil {
		return slot{}, err
	}
	s, err := new(decoder).decode(position, value)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return s, nil
}

// EventsAt returns the events of the slot at a position, as the version of an item tells it; none if the slot was removed. They must
// not be changed. It is for writers whose events have a cause with another key, which [event.CausedAt] does not find.
func (j *Journal) EventsAt(ctx context.Context, position int64) ([]event.Event, error) {
	if run := j.tail.run(position, position); run != nil {
		return run[0].events, nil
	}
	items, err := j.store.Get(ctx, j.keys.slot(position))
	if err != nil {
		return nil, j.unavailable("read a slot", err)
	}
	s, err := j.left(ctx, position, items[0])
	return s.events, err
}
