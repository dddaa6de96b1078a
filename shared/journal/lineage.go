package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// The errors of Lineage, besides those of every read.
var (
	// ErrNoEvent is returned if no event has the id.
	ErrNoEvent = errors.New("journal: no event has this id")

	// ErrEventGone is returned for an id at or below the floor, whether or not an event had it.
	ErrEventGone = errors.New("journal: the event was evicted")
)

// The bounds of a Lineage.
const (
	// MaxKin is how many ancestors, and how many descendants, a Lineage has at most.
	MaxKin = 1000

	// MaxSearch is how many events are searched for descendants.
	MaxSearch = 100_000
)

// Lineage is what has led to an event and what it has led to, each oldest first, with causes and actors.
type Lineage struct {
	// Ancestors are the event's cause, the cause of that, and so on, up to the floor.
	Ancestors []event.Event
	// Descendants are the events whose ancestor the event is.
	Descendants []event.Event
	// SearchedTo is the last id that was searched for descendants, if a bound was met before the end of the journal, so that there
	// may be more above it; otherwise 0.
	SearchedTo event.ID
}

// Lineage returns the lineage of an event. It searches the events after it for descendants: [MaxSearch] of them at most, for 10 s,
// and until there are [MaxKin] or their bytes are maxBytes. The error is [ErrNoEvent] or [ErrEventGone] if there is no such event.
func (j *Journal) Lineage(ctx context.Context, id event.ID, maxBytes int) (Lineage, error) {
	if j.ctx.Err() != nil {
		return Lineage{}, ErrClosed
	}
	seq, err := j.sequence(ctx)
	if err != nil {
		return Lineage{}, err
	}
	self, err := j.find(ctx, id, seq)
	if err != nil {
		return Lineage{}, err
	}
	ancestors, err := j.ancestors(ctx, self, seq)
	if err != nil {
		return Lineage{}, err
	}
	search := &search{j: j, bytes: maxBytes, by: map[event.ID]bool{}, last: map[placed]event.ID{}}
	to, err := search.run(ctx, self, seq.Position)
	if err != nil {
		return Lineage{}, err
	}
	return Lineage{ancestors, search.found, to}, j.nameCauses(ctx, ancestors)
}

// member is an event and where it is.
type member struct {
	slot  slot
	index int // among the slot's events
}

func (m *member) event() *event.Event { return &m.slot.events[m.index] }

// find looks an event up by its id.
func (j *Journal) find(ctx context.Context, id event.ID, seq store.Sequence) (member, error) {
	switch {
	case id == 0: // it is before all events
		return member{}, ErrNoEvent
	case id <= event.ID(seq.FloorID):
		return member{}, ErrEventGone
	}
	position, err := j.locate(ctx, id-1, seq)
	if err != nil {
		return member{}, err
	}
	for position <= seq.Position {
		run, err := j.slots(ctx, position, seq.Position)
		if errors.Is(err, errEvicted) {
			return member{}, ErrEventGone
		}
		if err != nil {
			return member{}, err
		}
		for _, s := range run {
			if s.last >= id {
				return s.find(id)
			}
		}
		position += int64(len(run))
	}
	return member{}, ErrNoEvent
}

func (s slot) find(id event.ID) (member, error) {
	i, there := slices.BinarySearchFunc(s.events, id, func(e event.Event, id event.ID) int { return int(e.ID - id) })
	if !there {
		return member{}, ErrNoEvent
	}
	return member{s, i}, nil
}

// ancestors follows the causes of an event up to the floor.
func (j *Journal) ancestors(ctx context.Context, m member, seq store.Sequence) (all []event.Event, err error) {
	for len(all) < MaxKin {
		cause, err := j.causeOf(ctx, &m, seq)
		if errors.Is(err, ErrEventGone) || errors.Is(err, ErrNoEvent) {
			break
		}
		if err != nil {
			return nil, err
		}
		m = cause
		all = append(all, m.event().Apart())
	}
	slices.Reverse(all)
	return all, nil
}

// causeOf returns the cause of an event. The error is ErrNoEvent if it has none.
func (j *Journal) causeOf(ctx context.Context, m *member, seq store.Sequence) (member, error) {
	e := m.event()
	if at := e.Cause.Position(); at > 0 {
		if at <= seq.FloorPosition {
			return member{}, ErrEventGone
		}
		run, err := j.slots(ctx, at, at)
		if errors.Is(err, errEvicted) {
			return member{}, ErrEventGone
		}
		if err != nil {
			return member{}, err
		}
		return run[0].find(event.LastOf(run[0].events, e.Key))
	}
	id := e.Cause.ID()
	switch {
	case id == 0:
		return member{}, ErrNoEvent
	case id >= m.slot.events[0].ID:
		return m.slot.find(id)
	default:
		return j.find(ctx, id, seq)
	}
}

// search looks for the descendants of an event among those after it.
type search struct {
	j     *Journal
	bytes int // that those found may still have

	found  []event.Event
	by     map[event.ID]bool   // the event and its descendants
	last   map[placed]event.ID // those of them that are the last with their key in their slot
	looked int
	seen   event.ID // the last id that was looked at
}

// placed is a slot's position and a key.
type placed struct {
	position int64
	key      event.Key
}

// run searches the events after m up to a position. It returns the last id that it has seen if it met a bound before.
func (s *search) run(ctx context.Context, m member, goal int64) (cut event.ID, err error) {
	began := time.Now()
	s.seen = m.event().ID
	s.add(m.slot.position, m.event())
	if !s.slot(&m.slot, m.index+1) {
		return s.seen, nil
	}
	for next := m.slot.position + 1; next <= goal; {
		if time.Since(began) > scanFor {
			return s.seen, nil
		}
		run, err := s.j.slots(ctx, next, goal)
		if errors.Is(err, errEvicted) {
			return 0, ErrEventGone
		}
		if err != nil {
			return 0, err
		}
		for i := range run {
			if !s.slot(&run[i], 0) {
				return s.seen, nil
			}
		}
		next += int64(len(run))
	}
	return 0, nil
}

// slot searches a slot's events from an index on, and reports whether it came to their end.
func (s *search) slot(in *slot, from int) bool {
	for i := from; i < len(in.events); i++ {
		if len(s.found) == MaxKin || s.looked == MaxSearch || s.bytes <= 0 {
			return false
		}
		s.looked++
		s.seen = in.events[i].ID
		s.look(in.position, &in.events[i])
	}
	return true
}

// look adds an event if it is a descendant.
func (s *search) look(position int64, e *event.Event) {
	cause := e.Cause.ID()
	if at := e.Cause.Position(); at > 0 {
		cause = s.last[placed{at, e.Key}]
	}
	if !s.by[cause] {
		delete(s.last, placed{position, e.Key})
		return
	}
	s.add(position, e)
	found := e.Apart()
	found.Cause = event.CausedBy(cause)
	s.found = append(s.found, found)
	s.bytes -= found.Size()
}

func (s *search) add(position int64, e *event.Event) {
	s.by[e.ID] = true
	s.last[placed{position, e.Key}] = e.ID
}
