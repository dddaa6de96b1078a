package stream

import (
	"context"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// answered is a note: where the events went. Their sequences are read there.
type answered struct {
	Fingerprint []byte   `json:"f"`
	Number      number   `json:"n"`
	Place       int64    `json:"p"` // of the first event; the others follow
	EventID     event.ID `json:"e"` // likewise
	Count       int      `json:"c"`
}

// onceOp returns the put of the append's note.
func (a *addition) onceOp(s *Streams, n number, place int64, first event.ID) store.Op {
	value := encode(answered{a.Once.Fingerprint[:], n, place, first, len(a.Events)})
	return a.note.Put(value, s.now())
}

// earlier returns the receipt of the earlier append, from the note found; done is false if that does not stand.
func (a *addition) earlier(ctx context.Context, s *Streams, found *store.Item) (r Receipt, done bool, err error) {
	if !a.note.Stands(found, s.now()) {
		return r, false, nil
	}
	var was answered
	if err := decode(found, &was); err != nil {
		return r, true, err
	}
	if err := a.Once.Same(was.Fingerprint); err != nil {
		return r, true, err
	}
	if was.Count != len(a.Events) {
		return r, true, journal.ErrIdempotencyMismatch
	}
	_, p, _, err := s.locate(ctx, eventID(was.Number, was.Place)) // one write puts all of them into one item
	if err != nil {
		return r, true, err
	}
	r.Replayed = true
	for i, at := range p.spots(was.Place)[:was.Count] {
		r.Events = append(r.Events, Appended{eventID(was.Number, at.place), at.name, at.sequence, was.EventID + event.ID(i)})
	}
	return r, true, nil
}
