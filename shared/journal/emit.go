package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/store"
)

// Emit appends events with neighbouring ids, once for all calls with the same Idempotency; if once is nil, every call appends. Where
// other processes share the store, calls that come while others write share a slot with each other (package groupcommit). It is not
// undone by the end of ctx once it has begun.
func (j *Journal) Emit(ctx context.Context, events []event.Event, once *Idempotency) (Receipt, error) {
	if once == nil && j.store.Exclusive() { // which shares its syncs among all writes
		return j.Write(ctx, func(context.Context, *store.Conflict) (Change, error) { return Change{Events: events}, nil })
	}
	e := &emission{events: events, once: once}
	if once != nil {
		e.note = NoteAt(j.keys.once(once.Digest()))
	}
	if err := j.emits.do(ctx, e); err != nil {
		return Receipt{}, err
	}
	return e.receipt, e.err
}

// emission is one call of Emit, and its result.
type emission struct {
	events []event.Event
	actor  string       // on whose behalf
	once   *Idempotency // nil: none
	note   *Note        // of once

	receipt Receipt
	err     error
}

// emits gathers calls of Emit. Those with a key have notes, so that their write is a transaction, for which DynamoDB takes twice as
// much: it is not shared with the others.
type emits struct {
	j            *Journal
	plain, noted *groupcommit.Group[*emission]
}

// The bounds of emissions that share a write: one item of the journal holds the events, and one transaction their notes.
const (
	sharedBytes = 256 << 10
	sharedNotes = store.MaxOps - 10 // the slot's operations are in it too
)

// emitWriters is how many writes are under way at most while they are rare, by default.
const emitWriters = 16

func newEmits(j *Journal, writers int) *emits {
	e := &emits{j: j}
	e.plain, e.noted = e.group(writers), e.group(writers)
	return e
}

func (e *emits) group(writers int) *groupcommit.Group[*emission] {
	var pacer groupcommit.Pacer
	return groupcommit.New(groupcommit.Options[*emission]{
		Batch: func() func(*emission) bool { return (&sharing{}).add },
		Write: func(ctx context.Context, batch []*emission) {
			pacer.Began()
			e.write(context.WithoutCancel(ctx), batch) // it has begun
		},
		More:    func([]*emission) bool { return !pacer.IsFrequent() },
		Writers: writers,
		Again:   groupcommit.Slow,
	})
}

// do has an emission written. The error is that of ctx, if nothing was written because of it.
func (e *emits) do(ctx context.Context, one *emission) error {
	if e.j.store.Exclusive() {
		e.alone(ctx, one)
		return nil
	}
	one.actor = Actor(ctx)
	group := e.plain
	if one.note != nil {
		group = e.noted
	}
	// What waits for writes of a store that is away is given up in time, or those that wait would be more and more.
	bounded, cancel := context.WithTimeout(ctx, e.j.timing.Append)
	defer cancel()
	err := group.Do(bounded, one)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s are over before a write of the events has begun", ErrUnavailable, e.j.timing.Append)
	}
	return err
}

// alone writes an emission with a key.
func (e *emits) alone(ctx context.Context, one *emission) {
	receipt, err := e.j.Write(ctx, func(_ context.Context, lost *store.Conflict) (Change, error) {
		if lost != nil && one.isReplay(lost, 0, e.j.now()) {
			return Change{}, errNothing
		}
		return Change{Events: one.events, Ops: func(r Receipt) []store.Op { return []store.Op{one.noted(r, e.j.now())} }}, nil
	})
	if !errors.Is(err, errNothing) {
		one.receipt, one.err = receipt, err
	}
}

// sharing is what the emissions of one write have together.
type sharing struct {
	bytes int
	notes map[store.Key]struct{}
}

// add adds an emission if it fits; the first does. A key that is there already goes into a later write, which finds what this one makes.
func (s *sharing) add(e *emission) bool {
	size := slotSize(e.events)
	if s.bytes > 0 && s.bytes+size > sharedBytes {
		return false
	}
	if e.note != nil {
		if _, taken := s.notes[e.note.key]; taken || len(s.notes) == sharedNotes {
			return false
		}
		if s.notes == nil {
			s.notes = map[store.Key]struct{}{}
		}
		s.notes[e.note.key] = struct{}{}
	}
	s.bytes += size
	return true
}

// write writes emissions that fit in one write.
func (e *emits) write(ctx context.Context, batch []*emission) {
	WriteTogether(ctx, e.j, batch, e.prepare, func(batch []*emission, r Receipt, err error) {
		for _, one := range batch {
			one.receipt, one.err = r.of(one), err
			r.FirstID += event.ID(len(one.events))
		}
	})
}

// of returns the receipt of an emission whose events are the next of a write.
func (r Receipt) of(one *emission) Receipt {
	if r.Position == 0 { // it has failed
		return Receipt{}
	}
	return Receipt{Position: r.Position, FirstID: r.FirstID, Count: len(one.events)}
}

// prepare is a [PrepareTogether]. It leaves out those whose key an earlier request had.
func (e *emits) prepare(_ context.Context, batch []*emission, lost *store.Conflict) (left []*emission, c Change, err error) {
	now := e.j.now()
	for i, one := range batch {
		if lost == nil || !one.isReplay(lost, i, now) {
			left, c.Events = append(left, one), append(c.Events, one.signed()...)
		}
	}
	if batch[0].note != nil {
		c.Ops = func(r Receipt) []store.Op { return notes(left, r, now) }
	}
	return left, c, nil
}

// isReplay reports whether an earlier request had the emission's key, and then gives it the result of that: the i-th operation of a
// write that was lost was to put its note.
func (e *emission) isReplay(lost *store.Conflict, i int, now time.Time) bool {
	found, failed := lost.At(i)
	if e.note == nil || !failed || !e.note.Stands(found, now) {
		return false
	}
	e.receipt, e.err = readOnce(found, e.once)
	return true
}

// signed returns the events with who emits them.
func (e *emission) signed() []event.Event {
	if e.actor == "" || !slices.ContainsFunc(e.events, func(e event.Event) bool { return e.By == "" }) {
		return e.events
	}
	events := slices.Clone(e.events)
	for i := range events {
		events[i].By = cmp.Or(events[i].By, e.actor)
	}
	return events
}

// notes returns the operations that put the notes of emissions, in their order.
func notes(batch []*emission, r Receipt, now time.Time) []store.Op {
	ops := make([]store.Op, len(batch), len(batch)+1+maxParts)
	for i, one := range batch {
		ops[i] = one.noted(r.of(one), now)
		r.FirstID += event.ID(len(one.events))
	}
	return ops
}

// noted returns the operation that puts the note of an emission.
func (e *emission) noted(r Receipt, now time.Time) store.Op {
	return e.note.Put(onceValue(e.once, r), now)
}
