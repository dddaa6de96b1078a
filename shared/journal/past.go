package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// past is what a process keeps of what was.
type past struct {
	turn turn              // one at a time finds out what was, so that memory stays bounded
	last map[string]folded // by fold, what was found out last, from which the next request may go on
}

// folded is the state of a fold after every event up to an id, and after none above it.
type folded struct {
	last  event.ID
	next  int64 // slots from here on may hold more events
	state State
}

// SnapshotAt is [Journal.SnapshotOf] as of an earlier EventId: it calls each for every object of a part of a fold as it was after the event
// with that id, or after the newest before it. The error is [ErrEvicted] below the floor, whose own id is told, [ErrBeyond]
// beyond the newest event, and [ErrUnknownFold] if there is no such fold. It sees every append acknowledged before the call.
func (j *Journal) SnapshotAt(ctx context.Context, fold string, at event.ID, p Part, each func(key string, value []byte)) error {
	for try := 0; ; try++ {
		now, state, err := j.stateOf(ctx, fold, at, try > 0)
		if errors.Is(err, errEvicted) && try < 2 {
			continue // slots were removed: a generation tells what they did, or the floor has passed the moment by now
		}
		if err != nil {
			return err
		}
		objects := state.part(p.Prefixes)
		return objects.show(ctx, now.fold.Show, &p, each)
	}
}

// stateOf returns what a fold is, and what it was at an id. If again is true, it goes by nothing that is in memory, above which slots may
// have been removed.
func (j *Journal) stateOf(ctx context.Context, fold string, at event.ID, again bool) (now present, was State, err error) {
	seq, err := j.sequence(ctx)
	if err != nil {
		return now, was, err
	}
	if at < event.ID(seq.FloorID) {
		return now, was, fmt.Errorf("%w: the oldest EventId that is kept is %d", ErrEvicted, seq.FloorID)
	}
	if now, err = j.present(ctx, fold); err != nil {
		return now, was, err
	}
	switch {
	case at > now.last:
		return now, was, fmt.Errorf("%w: the newest EventId is %d", ErrBeyond, now.last)
	case at == now.last:
		return now, now.state, nil
	}
	was, err = j.stateAt(ctx, now, at, seq, again)
	return now, was, err
}

// stateAt returns what a fold was at an id between the floor and now.
func (j *Journal) stateAt(ctx context.Context, now present, at event.ID, seq store.Sequence, again bool) (State, error) {
	done, err := j.past.turn.take(ctx)
	if err != nil {
		return State{}, err
	}
	defer done()
	from, err := j.nearest(ctx, &now, at, seq, again)
	if err != nil {
		return State{}, err
	}
	if err := j.foldTo(ctx, &now.fold, &from, at, now.position); err != nil {
		return State{}, err
	}
	j.past.last[now.fold.Name] = from
	return from.state.frozen(), nil
}

// foldTo applies the events of the slots up to a position, as far as an id.
func (j *Journal) foldTo(ctx context.Context, fold *Fold, f *folded, at event.ID, goal int64) error {
	for f.last < at && f.next <= goal {
		run, err := j.slots(ctx, f.next, goal)
		if errors.Is(err, errEvicted) {
			return fmt.Errorf("%w: nothing tells what was at %d: %w", ErrEvicted, at, err)
		}
		if err != nil {
			return err
		}
		for i := range run {
			if full := f.take(fold, &run[i], at); full {
				break
			}
		}
	}
	f.last = at
	return nil
}

// take applies the events of a slot up to an id; full says that the slot holds later ones.
func (f *folded) take(fold *Fold, s *slot, at event.ID) (full bool) {
	for i := range s.events {
		e := &s.events[i]
		if e.ID > at {
			f.last = at
			return true
		}
		if e.ID > f.last {
			fold.Apply(&f.state, e)
			f.last = e.ID
		}
	}
	f.next = s.position + 1
	return false
}

// nearest returns a state from which the fewest events lead to an id: one that is in memory, or one that the ladder tells, if
// reading that takes less than what it spares.
func (j *Journal) nearest(ctx context.Context, now *present, at event.ID, seq store.Sequence, again bool) (held folded, err error) {
	known := false
	if !again {
		held, known, err = j.remembered(ctx, now, at, seq.FloorPosition)
	}
	if err != nil {
		return folded{}, err
	}
	apart := now.eventsTo(at) - now.eventsTo(held.last)
	if known && apart <= 2*earlierEvents {
		return held, nil
	}
	m, told, err := j.toldBelow(ctx, now.fold.Name, at, seq)
	switch {
	case err != nil:
		return folded{}, err
	case known && (!told || apart <= m.cost()+now.eventsTo(at)-now.eventsAt(m.position)):
		return held, nil
	case told:
		return j.recall(ctx, now.fold.Name, m)
	}
	// Rule (ladder): where there is no moment at or below the floor, the slots are kept from the first on.
	return folded{next: 1}, nil
}

// toldBelow returns the newest moment of the ladder that shows no event above an id.
func (j *Journal) toldBelow(ctx context.Context, fold string, at event.ID, seq store.Sequence) (m moment, ok bool, err error) {
	above, err := j.locate(ctx, at, seq)
	if err != nil {
		return m, false, err
	}
	l, err := j.ladder(ctx)
	if err != nil {
		return m, false, err
	}
	m, ok = l.below(above-1, fold)
	return m, ok, nil
}

// remembered returns the newest state in memory that shows no event above an id, and above which slots are there; ok is false if there is
// none. Some may have been removed all the same, since a removal that is under way, or was broken off, takes one partition after the other.
func (j *Journal) remembered(ctx context.Context, now *present, at event.ID, floor int64) (f folded, ok bool, err error) {
	f, ok = before(now.earlier, now.fold.Name, at)
	if last, known := j.past.last[now.fold.Name]; known && last.last <= at && (!ok || last.last > f.last) {
		f, ok = last, true
	}
	f.state = f.state.frozen()
	if !ok || f.next > floor {
		return f, ok, nil
	}
	s, err := j.slotAt(ctx, f.next)
	return f, s != nil, err
}

// recall reads a fold's state at a moment.
func (j *Journal) recall(ctx context.Context, fold string, m moment) (folded, error) {
	f := folded{next: m.position + 1}
	complete, err := j.loadLayers(ctx, m.folds, m.layers, map[string]*State{fold: &f.state})
	if err == nil && !complete {
		err = fmt.Errorf("%w: part of a generation is missing", ErrDamaged)
	}
	return f, err
}
